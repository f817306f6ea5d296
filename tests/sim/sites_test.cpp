#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "casync/graph_builder.hpp"
#include "io/error.hpp"
#include "sim/folding.hpp"
#include "sim/steady.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::GraphBuilder;
using casync::Kind;
using casync::kNoIndex;
using casync::kRaw;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;
using Catch::Matchers::Contains;

constexpr std::uint32_t kSites = 8, kEach = 8;
constexpr std::int64_t kElements = 32 * kSites * kEach;
constexpr int kRuns = 4;  // periods

/// Links: 10 GB/s and 1 us latency within a site, 1 GB/s and 50 us latency between sites.
costs::LinkCosts within_sites() {
  costs::LinkCosts link;
  link.bandwidth = link.bandwidth_both_ways = 10 * kBandwidth;
  link.latency_s = 1e-6;
  return link;
}
costs::LinkCosts between_sites() {
  costs::LinkCosts link;
  link.bandwidth = link.bandwidth_both_ways = kBandwidth;
  link.latency_s = 50e-6;
  return link;
}

models::Model layered(int layers) {
  models::Model model = test_model(std::vector<std::int64_t>(layers, kElements));
  model.forward_s = 20e-6;
  for (int g = 0; g < layers; ++g) model.gradients[g].ready_s = 40e-6 * (g + 1) / layers;
  return model;
}

Scenario of_sites(models::Model model, const std::string& schedule, const std::string& topology) {
  Scenario scenario = test_scenario(std::move(model), topology, kSites, kRaw, kSites);
  scenario.plan.schedule = casync::Schedule::parse(schedule);
  scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node = kEach;
  scenario.cluster.site = {.nodes = kEach, .link = within_sites()};
  scenario.cluster.link = between_sites();
  scenario.iterations = kRuns;
  return scenario;
}

/// Graph of all 64 nodes of the 8 sites, each with its own tasks, for one gradient.
class AllNodes {
 public:
  AllNodes(const models::Model& model, std::uint32_t steps, std::uint32_t overlap)
      : model_(model), steps_(steps), overlap_(overlap) {
    for (int period = 0; period < kRuns; ++period) {
      for (std::uint32_t step = 0; step < steps; ++step) add_step(step);
    }
  }

  TaskGraph take() { return std::move(builder_).build(); }

  /// The same machines as hosts that stand for sites: a host's nodes share its link to other hosts.
  static costs::Cluster cluster() {
    costs::Cluster cluster = test_cluster(kSites * kEach);
    cluster.link = between_sites();
    cluster.host_link = within_sites();
    for (std::uint32_t node = 0; node < cluster.nodes; ++node) cluster.host[node] = node / kEach;
    return cluster;
  }

 private:
  using PerNode = std::array<TaskId, std::size_t{kSites} * kEach>;
  using Place = std::function<std::uint32_t(std::uint32_t)>;  // node of a group's member

  static PerNode none() {
    PerNode ids;
    ids.fill(kNoIndex);
    return ids;
  }
  void edge(TaskId before, TaskId after) {
    if (before != kNoIndex) builder_.edge(before, after);
  }

  void add_step(std::uint32_t step) {
    const std::int64_t forward = casync::from_seconds(model_.forward_s).count();
    const std::int64_t backward = casync::from_seconds(models::backward_s(model_)).count();
    for (std::uint32_t node = 0; node < ready_.size(); ++node) {
      const TaskId first = builder_.add({.amount = forward, .node = node});
      edge(computed_[node], first);
      edge(in_site_[node], first);
      if (step == overlap_ % steps_) edge(mean_[node], first);
      computed_[node] = builder_.add({.amount = backward, .node = node, .kind = Kind::kBackward});
      edge(first, computed_[node]);
    }
    ready_ = computed_;
    for (std::uint32_t site = 0; site < kSites; ++site) {
      all_reduce(kElements, [&](std::uint32_t i) { return site * kEach + i; });
    }
    in_site_ = ready_;
    if (step + 1 < steps_) return;
    for (std::uint32_t i = 0; i < kEach; ++i) {
      all_reduce(kElements / kEach, [&](std::uint32_t site) { return site * kEach + i; });
    }
    for (std::uint32_t site = 0; site < kSites; ++site) all_gather(site);
    mean_ = ready_;
  }

  /// Adds a ring all-reduce over 8 nodes. It starts after their tasks in ready_, which it replaces
  /// there by Joins that mark the ring's end on each node.
  void all_reduce(std::int64_t elements, const Place& place) {
    const TaskGraph ring = test_graph(test_model({elements}), "ring", 8, kRaw, 8);
    std::vector<TaskId> ids(ring.tasks(), kNoIndex);
    for (TaskId id = 0; id < ring.tasks(); ++id) {
      const Task& task = ring[id];
      ids[id] = casync::is_computation(task) ? ready_[place(task.node)] : builder_.add(task);
      if (!casync::is_computation(task)) move(ids[id], place(task.node), place(ring.peer(task)));
    }
    for (std::uint32_t member = 0; member < 8; ++member) {
      ready_[place(member)] = builder_.add({.node = place(member), .kind = Kind::kJoin});
    }
    for (TaskId id = 0; id < ring.tasks(); ++id) {
      for (const TaskId after : casync::successors(ring, id)) {
        if (!casync::is_computation(ring[after])) builder_.edge(ids[id], ids[after]);
      }
      builder_.edge(ids[id], ready_[place(ring[id].node)]);
    }
  }

  void move(TaskId id, std::uint32_t node, std::uint32_t peer) {
    Task& task = builder_.task(id);
    task.node = node;
    if (task.kind != Kind::kSend && task.kind != Kind::kRecv) return;
    const std::uint32_t from = task.kind == Kind::kSend ? node : peer;
    const std::uint32_t to = task.kind == Kind::kSend ? peer : node;
    task.peer_offset = (to + builder_.nodes() - from) % builder_.nodes();
  }

  /// Adds an all-gather within a site: in a ring, each node's share passes all its nodes.
  void all_gather(std::uint32_t site) {
    std::array<TaskId, kEach> last{};
    for (std::uint32_t i = 0; i < kEach; ++i) last[i] = ready_[site * kEach + i];
    for (std::uint32_t hop = 1; hop < kEach; ++hop) {
      std::array<TaskId, kEach> arrived{};
      for (std::uint32_t i = 0; i < kEach; ++i) {
        const std::uint32_t from = site * kEach + i, to = site * kEach + (i + 1) % kEach;
        Task task = {.amount = 4 * kElements / kEach, .node = from, .kind = Kind::kSend};
        const TaskId send = builder_.add(task);
        move(send, from, to);
        task.kind = Kind::kRecv;
        const TaskId recv = builder_.add(task);
        move(recv, to, from);
        builder_.edge(last[i], send);
        builder_.edge(send, recv);
        arrived[(i + 1) % kEach] = recv;
      }
      last = arrived;
    }
    for (std::uint32_t i = 0; i < kEach; ++i) ready_[site * kEach + i] = last[i];
  }

  models::Model model_;
  std::uint32_t steps_, overlap_;
  GraphBuilder builder_{kSites * kEach};
  PerNode computed_ = none(), in_site_ = none(), mean_ = none(), ready_ = none();
};

TEST_CASE("8 sites of 8 nodes take the time of their 64 nodes simulated one by one") {
  for (const std::uint32_t steps : {2, 5}) {
    for (const std::uint32_t overlap : {0, 1}) {
      CAPTURE(steps, overlap);
      const models::Model model = layered(1);
      const TaskGraph all = AllNodes(model, steps, overlap).take();
      casync::check(all);
      const Result each = run(all, AllNodes::cluster(), Network::kFair);
      const std::string schedule =
          "local(steps=" + std::to_string(steps) + ", overlap=" + std::to_string(overlap) + ")";
      for (const Fold fold : {Fold::kNever, Fold::kExactly}) {
        const Scenario scenario = of_sites(model, schedule, "ring");
        const ExpandedGraph sites = expand(scenario, fold);
        CHECK(sites.graph.folded == (fold == Fold::kExactly));
        CHECK(simulate(scenario, sites.graph).iteration == each.iteration);
      }
    }
  }
}

TEST_CASE("sites that are all alike are folded, and take the time of the whole graph") {
  for (const char* topology : {"ring", "ps"}) {
    for (const char* schedule : {"ddp", "local(steps=4)", "local(steps=6, fragments=3, overlap=1)",
                                 "local(steps=6, fragments=4, overlap=5, pattern=sequential)"}) {
      CAPTURE(topology, schedule);
      const Scenario scenario = of_sites(layered(4), schedule, topology);
      const TaskGraph whole = expand(scenario, casync::Folding::kNone);
      casync::check(whole);
      const ExpandedGraph folded = expand(scenario, Fold::kExactly);
      REQUIRE(folded.graph.folded);
      CHECK(folded.graph.tasks() * kSites == whole.tasks());
      const Result one = simulate(scenario, folded.graph, Timelines::kRecorded);
      const Result all = simulate(scenario, whole, Timelines::kRecorded);
      CHECK(one.iteration == all.iteration);
      CHECK(one.bytes_sent == all.bytes_sent);
      CHECK(steady_state(folded.graph, one.timeline, kRuns).period ==
            steady_state(whole, all.timeline, kRuns).period);
    }
  }
}

TEST_CASE("a site's nodes average in every step, and wait for it") {
  // A step takes 20 + 40 us, and then twice 7·1 us + 7/8·S/(10 GB/s) within the site.
  const std::int64_t bytes = 4 * kElements;
  const std::int64_t in_site = 2 * (7 * kUs + 7 * bytes / 8 * kPsPerByte / 10);
  const Scenario scenario = of_sites(layered(1), "local(steps=50)", "ring");
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  const Result result = simulate(scenario, graph, Timelines::kRecorded);
  const std::int64_t outer = 14 * (50 * kUs + bytes / 8 * kPsPerByte) + in_site / 2;
  CHECK(steady_state(graph, result.timeline, kRuns).period.count() ==
        50 * (60 * kUs + in_site) + outer);
}

TEST_CASE("a pair of sites may be nearer than the others, and slower") {
  Scenario scenario = of_sites(layered(1), "local(steps=2)", "ps");
  scenario.plan.nodes = 2;
  scenario.plan.decisions = {{kRaw, 2}};
  scenario.cluster.nodes = 2;
  scenario.cluster.host = {0, 1};
  scenario.cluster.compute_speed = {1, 1};
  const auto period = [&] {
    const TaskGraph graph = expand(scenario, casync::Folding::kNone);
    return simulate(scenario, graph).iteration.count();
  };
  const std::int64_t far = period();
  scenario.cluster.slow_links = {{.a = 0, .b = 1, .bandwidth = kBandwidth, .latency_s = 10e-6}};
  const std::int64_t near = period();
  // Each period has two messages in a row, a partial sum and a mean: 40 us less latency each.
  CHECK(far - near == kRuns * 2 * 40 * kUs);
  scenario.cluster.slow_links = {{.a = 0, .b = 1, .bandwidth = kBandwidth / 2}};
  CHECK(period() - far == kRuns * 2 * (4 * kElements / 2) * kPsPerByte);
  CHECK_THAT(difference_between_nodes(scenario.cluster), Contains("slower than others"));
}

TEST_CASE("sites that cannot be are refused") {
  Scenario scenario = of_sites(layered(1), "local(steps=2)", "ring");
  const TaskGraph graph = expand(scenario, casync::Folding::kFolded);
  const auto refusal = [&] {
    try {
      simulate(scenario, graph);
    } catch (const io::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal().empty());
  SECTION("no link") {
    scenario.cluster.site->link.bandwidth = 0;
    CHECK_THAT(refusal(), Contains("link of a site's nodes: bandwidth must be positive"));
  }
  SECTION("GPUs that are no whole number a node") {
    scenario.cluster.site->nodes = 3;
    CHECK_THAT(refusal(), Contains("a site of 3 nodes cannot have 8 GPUs"));
  }
}

}  // namespace
}  // namespace hipress::sim
