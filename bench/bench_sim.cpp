// Measures the simulator's tasks per second, compared with a bare loop and SimGrid over the same
// graphs in the same run.
#include <sys/resource.h>

#include <cmath>
#include <functional>

#include "bench/bare_loop.hpp"
#include "bench/report.hpp"
#include "bench/simgrid_loop.hpp"
#include "casync/folding.hpp"
#include "casync/graph_builder.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "sim/simulator.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace hipress::bench {
namespace {

using casync::GraphBuilder;
using casync::Kind;
using casync::TaskGraph;
using casync::TaskId;
using casync::UnitWork;

constexpr std::uint32_t kNodes = 64;
constexpr std::int64_t kElements = 1 << 20;
constexpr std::int64_t kOverhead_ps = 5'000'000;
constexpr std::int64_t kPsPerByte = 100;  // 10 GB/s

/// Graph of raw gradients with K = N, all ready at 0.
TaskGraph concurrent(const std::string& topology, std::size_t gradients) {
  models::Model model;
  for (std::size_t g = 0; g < gradients; ++g)
    model.gradients.push_back({.name = "g", .elements = kElements});
  return casync::expand(
      model, {.topology = topology,
              .nodes = kNodes,
              .algorithms = {},
              .decisions = std::vector<casync::Decision>(gradients, {casync::kRaw, kNodes})});
}

/// Graph of the same gradients, each ready on a node once the previous one is synchronised there.
TaskGraph one_after_the_other(const std::string& topology, std::uint32_t gradients) {
  const casync::Topology& row = casync::find_topology(topology);
  GraphBuilder builder(kNodes);
  std::vector<std::vector<TaskId>> last(
      kNodes);  // per node, the tasks that end the previous gradient
  for (std::uint32_t g = 0; g < gradients; ++g) {
    UnitWork work{.unit = g, .elements = kElements, .partitions = kNodes, .ready = {}};
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      const TaskId ready = builder.add({.gradient = g, .node = node, .kind = Kind::kBackward});
      for (const TaskId before : last[node]) builder.edge(before, ready);
      work.ready.push_back(ready);
      last[node].clear();
    }
    const TaskId first = builder.size();
    row.expand(builder, work);
    for (TaskId id = first; id < builder.size(); ++id) {
      const casync::Task& task = builder.task(id);
      if (task.kind == Kind::kRecv || task.kind == Kind::kMerge) last[task.node].push_back(id);
    }
  }
  return std::move(builder).build();
}

costs::Cluster cluster(std::uint32_t nodes = kNodes) {
  costs::Cluster machines;
  machines.nodes = nodes;
  machines.link.overhead_s = 1e-12 * kOverhead_ps;
  machines.link.bandwidth = machines.link.bandwidth_both_ways = 1e12 / kPsPerByte;
  machines.compute_speed.assign(nodes, 1);
  for (std::uint32_t node = 0; node < nodes; ++node) machines.host.push_back(node);
  return machines;
}

/// Case that is compared with SimGrid. SimGrid has no network like `port`, so end times agree only
/// in cases where no two nodes send to one receiver at the same time.
struct Case {
  std::string name;
  sim::Network network = sim::Network::kPort;
  SimGridLoop::Sends sends = SimGridLoop::Sends::kOneByOne;
  bool same_end = true;
};

class Benchmark {
 public:
  Benchmark()
      : simgrid_(make_simgrid_loop(kNodes, machines_.link.bandwidth, kOverhead_ps / kPsPerByte)) {
    if (!simgrid_) {
      fmt::print(stderr,
                 "built without SimGrid (Debian's libsimgrid-dev): its rows are left out\n");
    }
  }

  void run(const Case& one, const TaskGraph& graph) {
    BareLoop bare(graph, kOverhead_ps, kPsPerByte);
    const sim::Result result = simulate(one, graph);
    const std::int64_t floor = bare.run();
    if (one.same_end)
      require_same(one.name, result, 1e-12 * static_cast<double>(floor), "bare loop");
    const PairedTiming times = compare([&] { simulate(one, graph); }, [&] { bare.run(); });
    const double tasks = graph.tasks();
    const double speed = tasks / times.subject.median_s;
    report_.add({one.name, "tasks/s", speed, "bare_loop", tasks / times.reference.median_s});
    run_simgrid(one, graph, result, speed);
    report_.add({one.name, "bytes/task", static_cast<double>(result.state_bytes) / tasks, "budget",
                 kBytesPerTask});
  }

  /// Times only one run, since 100 million tasks take a while.
  void run_large(const std::string& name, std::size_t gradients) {
    const TaskGraph graph = concurrent("ring", gradients);
    const Case one{.name = name};
    sim::Result result;
    const double tasks = graph.tasks();
    const double ours_s = seconds_of([&] { result = simulate(one, graph); });
    BareLoop bare(graph, kOverhead_ps, kPsPerByte);
    const double bare_s = seconds_of([&] { bare.run(); });
    report_.add({name, "tasks/s", tasks / ours_s, "bare_loop", tasks / bare_s});
    report_.add({name, "bytes/task", static_cast<double>(result.state_bytes) / tasks, "budget",
                 kBytesPerTask});
  }

  /// Simulates BERT-large in a ring of 1024 nodes, folded to one node. Gradients of at least 2^20
  /// elements have K = N; all others form one bulk group. Reports the process's peak memory.
  void run_bert_large() {
    constexpr std::uint32_t kManyNodes = 1024;
    constexpr std::int64_t kLarge = 1 << 20;
    constexpr double kBudget_s = 2, kBudget_bytes = 1e9;
    const models::Model model = models::read_model("bert_large");
    casync::Plan plan{.topology = "ring", .nodes = kManyNodes, .algorithms = {}, .decisions = {}};
    plan.decisions.assign(model.gradients.size(), {casync::kRaw, kManyNodes});
    plan.bulk.threshold_bytes = kLarge * 4;
    const costs::Cluster machines = cluster(kManyNodes);
    const double spent_s = seconds_of([&] {
      const TaskGraph graph = casync::expand(model, plan, casync::Folding::kFolded);
      sim::simulate(graph, sim::TaskCosts({}, {}), machines, {.network = sim::Network::kFair});
    });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    report_.add({"fair.bert_large_ring1024", "s", spent_s, "budget", kBudget_s});
    report_.add({"fair.bert_large_ring1024", "peak bytes",
                 1024 * static_cast<double>(usage.ru_maxrss), "budget", kBudget_bytes});
  }

  void write(const std::string& json) const { report_.write(json); }

 private:
  static constexpr double kBytesPerTask = 64;

  sim::Result simulate(const Case& one, const TaskGraph& graph) const {
    return sim::simulate(graph, sim::TaskCosts({}, {}), machines_, {.network = one.network});
  }

  static void require_same(const std::string& name, const sim::Result& result, double other_s,
                           const char* other) {
    const double ours_s = casync::to_seconds(result.iteration);
    const double difference = std::abs(ours_s / other_s - 1);
    fmt::print(stderr, "{}: ends at {} s, relative difference to the {}: {:.2g}\n", name, ours_s,
               other, difference);
    if (!(difference <= 1e-6)) {
      throw io::RunError(
          fmt::format("{}: {} s, but the {} gives {} s", name, ours_s, other, other_s));
    }
  }

  void run_simgrid(const Case& one, const TaskGraph& graph, const sim::Result& result,
                   double speed) {
    if (!simgrid_) return;
    double end_s = 0;
    const double spent_s = seconds_of([&] { end_s = simgrid_->run(graph, one.sends); });
    if (one.same_end) require_same(one.name, result, end_s, "SimGrid run");
    report_.add({one.name, "tasks/s", speed, "simgrid", graph.tasks() / spent_s});
  }

  const costs::Cluster machines_ = cluster();
  std::unique_ptr<SimGridLoop> simgrid_;
  Report report_;
};

struct Choices {
  std::string json;
  bool large = false;
};

int run_all(const Choices& choices) {
  if (!choices.json.empty()) io::require_writable(choices.json);
  Benchmark benchmark;
  benchmark.run_bert_large();  // first, because it reports peak memory
  benchmark.run({.name = "port.ring64x40"}, one_after_the_other("ring", 40));
  benchmark.run({.name = "port.ps64x40", .same_end = false}, one_after_the_other("ps", 40));
  {
    const TaskGraph rings = concurrent("ring", 82);
    benchmark.run({.name = "port.ring64_concurrent82"}, rings);
    benchmark.run({.name = "fair.ring64_concurrent82",
                   .network = sim::Network::kFair,
                   .sends = SimGridLoop::Sends::kAtOnce},
                  rings);
  }
  if (choices.large) {
    benchmark.run_large("port.ring64_1M", 50);  // 20 224 tasks per gradient
    benchmark.run_large("port.ring64_10M", 495);
    benchmark.run_large("port.ring64_100M", 4945);
  }
  benchmark.write(choices.json);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  hipress::bench::Choices choices;
  return hipress::tools::run_tool(
      argc, argv,
      {"bench_sim", "Times the simulator beside a bare loop and SimGrid over the same graphs.",
       "bench_sim --json bench_sim.json"},
      [&](CLI::App& app) {
        app.add_option("--json", choices.json, "also write the rows to this file");
        app.add_flag("--large", choices.large,
                     "also 1, 10 and 100 million tasks (needs 16 GB and some minutes)");
      },
      [&] { return hipress::bench::run_all(choices); });
}
