#pragma once

#include <array>
#include <random>

#include "tests/sim/fixtures.hpp"

namespace hipress::sim {

/// A small graph of all kinds over a random cluster, with many ties: everything that the engine can
/// be asked. The same for a seed on every compiler.
class RandomScenario {
 public:
  explicit RandomScenario(std::uint64_t seed) : draws_(seed) {
    make_cluster();
    make_costs();
    make_graph();
    options_.network = chance(2) ? Network::kFair : Network::kPort;
    if (chance(4)) options_.jitter = &jitter_;
    options_.draws = {draws_(), below(3)};
    options_.transfer_order = chance(3) ? TransferOrder::kNeed : TransferOrder::kReady;
    options_.backward_cores = chance(2) ? BackwardCores::kOne : BackwardCores::kNone;
    options_.record_timeline = true;
  }

  const casync::TaskGraph& graph() const { return graph_; }
  const costs::Cluster& cluster() const { return cluster_; }
  TaskCosts costs() const { return TaskCosts(profile_, {byte_codec()}); }
  const Options& options() const { return options_; }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(draws_() % bound); }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  template <class T, std::size_t kCount>
  T pick(const std::array<T, kCount>& values) {
    return values[below(kCount)];
  }

  void make_cluster() {
    cluster_ = test_cluster(1 + below(6));
    costs::LinkCosts& link = cluster_.link;
    link.overhead_s = pick(std::array{0.0, 0.0, 5e-6, 1.7e-6});
    link.latency_s = pick(std::array{0.0, 0.0, 3e-6, 1e-12});
    link.bandwidth = pick(std::array{1e9, 1.3e9});
    link.bandwidth_both_ways = link.bandwidth * pick(std::array{1.0, 1.0, 0.5, 0.7});
    for (double& speed : cluster_.compute_speed) speed = pick(std::array{1.0, 1.0, 0.5, 1.25, 0.9});
    if (chance(3)) {
      const auto factor = [&] { return pick(std::array{1.0, 1.5, 1.3, 2.0}); };
      cluster_.overlap = {factor(), factor(), factor()};
    }
    if (!chance(3)) return;
    cluster_.cores_per_host = 1 + static_cast<int>(below(3));
    for (std::uint32_t& host : cluster_.host) host = below(3);
    link.core_s_per_byte = pick(std::array{0.0, 1e-9, 1.3e-9, 4e-9});
    link.core_s_per_message = pick(std::array{0.0, 4e-6});
  }

  void make_costs() {
    profile_ = test_profile();
    profile_.merge = constant(pick(std::array<std::int64_t, 3>{0, 0, kUs}));
    if (chance(2)) profile_.codecs["byte"].encode.pieces[0].b_s = 1e-10;
  }

  void make_graph() {
    casync::GraphBuilder builder(cluster_.nodes);
    const std::uint32_t tasks = 5 + below(40);
    for (std::uint32_t i = 0; i < tasks; ++i) add_task(builder);
    graph_ = std::move(builder).build();
  }

  /// Of a kind before Recv, after up to three of the tasks before it; a Send brings its Recv.
  void add_task(casync::GraphBuilder& builder) {
    using casync::Kind;
    const auto kind = static_cast<Kind>(below(static_cast<std::uint32_t>(Kind::kRecv)));
    casync::Task task{.gradient = below(3),
                      .partition = below(2),
                      .node = below(cluster_.nodes),
                      .rotation = below(cluster_.nodes),
                      .kind = kind,
                      .algorithm = 0,
                      .flags = below(2) == 0 ? std::uint8_t{0} : casync::kAccumulate};
    task.amount = kind == Kind::kForward || kind == Kind::kBackward
                      ? kUs * pick(std::array<std::int64_t, 4>{0, 1, 5, 7})
                      : pick(std::array<std::int64_t, 5>{0, 32, 1000, 5000, 77777});
    const casync::TaskId before = builder.size();
    const casync::TaskId id = builder.add(task);
    for (std::uint32_t edges = before == 0 ? 0 : below(4); edges > 0; --edges) {
      builder.edge(below(before), id);
    }
    if (kind != Kind::kSend) return;
    task.kind = Kind::kRecv;
    task.node = (task.node + task.rotation) % cluster_.nodes;
    builder.edge(id, builder.add(task));
  }

  std::mt19937_64 draws_;
  costs::Cluster cluster_;
  costs::Profile profile_;
  casync::TaskGraph graph_;
  Jitter jitter_ = Jitter({0.5, 1, 1, 1.25});
  Options options_;
};

}  // namespace hipress::sim
