#pragma once

#include <array>
#include <random>

#include "casync/graph_builder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {

/// A small random graph with all kinds of tasks, on a random cluster with all features, with many
/// ties. A seed gives the same scenario on every compiler.
class RandomScenario {
 public:
  /// kSome: hosts of several nodes, or racks, or both, and perhaps nodes of several GPUs.
  enum class Hierarchy : std::uint8_t { kNone, kSome };
  explicit RandomScenario(std::uint64_t seed, Hierarchy hierarchy = Hierarchy::kNone)
      : draws_(seed) {
    make_cluster();
    if (hierarchy == Hierarchy::kSome) make_hierarchy();
    make_costs();
    make_graph();
    const bool port = !chance(2) && costs::is_uniform(cluster_);
    options_.network = port ? Network::kPort : Network::kFair;
    if (chance(4)) options_.jitter = &jitter_;
    options_.draws = {draws_(), below(3)};
    options_.transfer_order = chance(3) ? TransferOrder::kNeed : TransferOrder::kReady;
    if (chance(2)) make_computing();
    options_.record_timeline = true;
    if (costs::slows(cluster_.overlap) && chance(2)) make_matrix();
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

  /// Replaces the overlap constants by a matrix, and may give the graph a mix.
  void make_matrix() {
    const auto factor = [&] { return pick(std::array{1.0, 1.5, 1.3, 2.0}); };
    costs::OverlapMatrix& matrix = cluster_.overlap.matrix.emplace();
    for (costs::ClassOverlap& row : matrix.classes) {
      for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) row.*key.factor = factor();
    }
    matrix.codec_beside_transfer = factor();
    matrix.transfer_beside_codec = factor();
    if (chance(2)) graph_.mix = models::Mix{0.5, 0, 0.25, 0.125, 0.125};
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
    link.core_factor_interrupting = pick(std::array{1.0, 1.0, 1.5, 3.1});
    cluster_.core_turn_s = pick(std::array{0.0, 0.0, 7e-6, 1.3e-6});
  }

  void make_hierarchy() {
    const bool racks = chance(2);
    const bool together = !racks || chance(2);
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node) {
      cluster_.host[node] = together ? below(4) : node;
    }
    if (together) {
      costs::LinkCosts& link = cluster_.host_link.emplace();
      link.overhead_s = pick(std::array{0.0, 2e-6, 1.3e-6});
      link.latency_s = pick(std::array{0.0, 1e-6, 3e-12});
      link.bandwidth = cluster_.link.bandwidth * pick(std::array{1.0, 8.0, 0.7, 3.0});
      link.bandwidth_both_ways = link.bandwidth * pick(std::array{1.0, 1.0, 0.5, 0.7});
      link.core_s_per_byte = pick(std::array{0.0, 0.0, 1.1e-9});
    }
    if (chance(3)) {
      cluster_.gpus_per_node = 2 + below(7);
      cluster_.gpu_link = {pick(std::array{0.0, 1e-6}), cluster_.link.bandwidth * 4};
    }
    while (racks && cluster_.racks.size() < 3) {
      const std::uint32_t hosts = cluster_.racks.empty() ? 1 : cluster_.racks.back().hosts;
      cluster_.racks.push_back({.hosts = hosts * (1 + below(2)),
                                .oversubscription = pick(std::array{1.0, 2.0, 4.0, 3.0, 1.7}),
                                .latency_s = pick(std::array{0.0, 4e-6})});
      if (chance(2)) break;
    }
  }

  /// Sets the computation's threads, some of which pause part of the time, and its memory traffic.
  void make_computing() {
    const int cores = cluster_.cores_per_host;
    casync::Computing& computing = options_.computing.emplace();
    if (cores > 0) {
      computing.threads = 1 + static_cast<int>(below(static_cast<std::uint32_t>(cores)));
      const auto busy = [&] { return computing.threads * pick(std::array{1.0, 1.0, 0.3, 0.7}); };
      computing.forward = busy();
      computing.backward = busy();
      if (chance(2)) computing.of_gradients = {busy(), busy()};
    }
    if (!chance(2)) return;
    cluster_.host_memory_bandwidth = pick(std::array{2e10, 1.3e10});
    computing.memory_traffic = pick(std::array{0.0, 1e10, 1.1e10, 5e10});
  }

  void make_costs() {
    profile_ = test_profile();
    profile_.merge = constant(pick(std::array<std::int64_t, 3>{0, 0, kUs}));
    const auto nodes = static_cast<int>(cluster_.nodes);
    if (chance(2)) profile_.all_reduce[nodes] = constant(7 * kUs);
    if (chance(2)) profile_.codecs["byte"].encode.pieces[0].b_s = 1e-10;
    if (chance(2)) profile_.codecs["byte"].encode_factor_quotients = 1.3;
  }

  void make_graph() {
    casync::GraphBuilder builder(cluster_.nodes);
    const std::uint32_t tasks = 5 + below(40);
    for (std::uint32_t i = 0; i < tasks; ++i) {
      if (chance(8)) {
        after_some(builder,
                   builder.add({.node = below(cluster_.nodes), .kind = casync::Kind::kJoin}));
      } else if (cluster_.gpus_per_node > 1 && chance(6)) {
        add_local_tasks(builder);
      } else if (chance(20)) {
        add_all_reduce(builder);
      } else {
        add_task(builder);
      }
    }
    graph_ = std::move(builder).build();
  }

  /// Adds a sum over a node's GPUs, and its broadcast, which follows the sum.
  void add_local_tasks(casync::GraphBuilder& builder) {
    casync::Task task{.amount = pick(std::array<std::int64_t, 3>{0, 999, 80000}),
                      .gradient = below(3),
                      .node = below(cluster_.nodes),
                      .kind = casync::Kind::kLocalReduce};
    const casync::TaskId sum = builder.add(task);
    after_some(builder, sum);
    task.kind = casync::Kind::kLocalBroadcast;
    const casync::TaskId gathered = builder.add(task);
    builder.edge(sum, gathered);
    after_some(builder, gathered);
  }

  /// Adds a task of a random kind, one of those before kRecv in the enum. It waits for up to three
  /// earlier tasks. A Send gets its Recv. Some encodes, decodes and merges are members of a batch.
  void add_task(casync::GraphBuilder& builder) {
    using casync::Kind;
    const auto kind = static_cast<Kind>(below(static_cast<std::uint32_t>(Kind::kRecv)));
    casync::Task task{.gradient = below(3),
                      .partition = below(2),
                      .node = below(cluster_.nodes),
                      .peer_offset = below(cluster_.nodes),
                      .kind = kind,
                      .algorithm = 0,
                      .flags = below(2) == 0 ? casync::kNoFlags : casync::kAccumulate};
    task.amount = kind == Kind::kForward || kind == Kind::kBackward
                      ? kUs * pick(std::array<std::int64_t, 4>{0, 1, 5, 7})
                      : pick(std::array<std::int64_t, 5>{0, 32, 1000, 5000, 77777});
    const bool coded = kind == Kind::kEncode || kind == Kind::kDecode || kind == Kind::kMerge;
    if (coded && chance(5)) task.flags |= casync::kBatched;
    if (coded && chance(3)) task.flags |= casync::kDivideOwn;
    if (kind == Kind::kSend && chance(3)) task.flags |= casync::kOfLongSlice;
    const casync::TaskId id = builder.add(task);
    after_some(builder, id);
    if (kind != Kind::kSend) return;
    task.kind = Kind::kRecv;
    task.node = (task.node + task.peer_offset) % cluster_.nodes;
    builder.edge(id, builder.add(task));
  }

  /// Makes task `id` wait for up to three earlier tasks.
  void after_some(casync::GraphBuilder& builder, casync::TaskId id) {
    for (std::uint32_t edges = id == 0 ? 0 : below(4); edges > 0; --edges) {
      builder.edge(below(id), id);
    }
  }

  /// Adds an AllReduce: one task per node, all of the same gradient, partition and size.
  void add_all_reduce(casync::GraphBuilder& builder) {
    casync::Task task{.amount = pick(std::array<std::int64_t, 3>{0, 1000, 77777}),
                      .gradient = below(3),
                      .partition = 2 + builder.size(),
                      .peer_offset = below(cluster_.nodes),
                      .kind = casync::Kind::kAllReduce,
                      .algorithm = chance(2) ? std::int8_t{0} : casync::kRaw};
    if (casync::casts(task)) task.flags = casync::kDivideOwn;
    for (; task.node < cluster_.nodes; ++task.node) after_some(builder, builder.add(task));
  }

  std::mt19937_64 draws_;
  costs::Cluster cluster_;
  costs::Profile profile_;
  casync::TaskGraph graph_;
  Jitter jitter_ = Jitter({0.5, 1, 1, 1.25});
  Options options_;
};

}  // namespace hipress::sim
