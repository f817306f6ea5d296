// Tasks per second of the simulator beside a bare loop over the same graph in the same run.
#include <CLI/CLI.hpp>
#include <functional>

#include "bench/bare_loop.hpp"
#include "bench/report.hpp"
#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "io/tool.hpp"
#include "sim/simulator.hpp"

namespace hipress::bench {
namespace {

using casync::GradientWork;
using casync::GraphBuilder;
using casync::Kind;
using casync::TaskGraph;
using casync::TaskId;

constexpr std::uint32_t kNodes = 64;
constexpr std::int64_t kElements = 1 << 20;
constexpr std::int64_t kOverhead_ps = 5'000'000;
constexpr std::int64_t kPsPerByte = 100;  // 10 GB/s

/// Raw gradients with K = N, all ready at 0.
TaskGraph concurrent(const std::string& strategy, std::size_t gradients) {
  models::Model model;
  for (std::size_t g = 0; g < gradients; ++g)
    model.gradients.push_back({.name = "g", .elements = kElements});
  return casync::expand(
      model, {.strategy = strategy,
              .nodes = kNodes,
              .algorithms = {},
              .decisions = std::vector<casync::Decision>(gradients, {casync::kRaw, kNodes})});
}

/// The same, each ready on a node when the one before is done there.
TaskGraph one_after_the_other(const std::string& strategy, std::uint32_t gradients) {
  const casync::Strategy& row = casync::find_strategy(strategy);
  GraphBuilder builder(kNodes);
  std::vector<std::vector<TaskId>> last(kNodes);  // tasks that end the gradient before, per node
  for (std::uint32_t g = 0; g < gradients; ++g) {
    GradientWork work{.gradient = g, .elements = kElements, .partitions = kNodes, .ready = {}};
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

costs::Cluster cluster() {
  costs::Cluster machines;
  machines.nodes = kNodes;
  machines.link.overhead_s = 1e-12 * kOverhead_ps;
  machines.link.bandwidth = machines.link.bandwidth_both_ways = 1e12 / kPsPerByte;
  machines.compute_speed.assign(kNodes, 1);
  for (std::uint32_t node = 0; node < kNodes; ++node) machines.host.push_back(node);
  return machines;
}

void run_case(Report& report, const std::string& name, sim::Network network,
              const TaskGraph& graph) {
  const costs::Cluster machines = cluster();
  const sim::TaskCosts costs({}, {});
  BareLoop bare(graph, kOverhead_ps, kPsPerByte);
  // Without contention at the receivers, all three agree to the picosecond.
  const std::int64_t ours =
      simulate(graph, costs, machines, {.network = network}).iteration.count();
  const std::int64_t floor = bare.run();
  if (name.find("ring") != std::string::npos && ours != floor) {
    throw io::RunError(fmt::format("{}: {} ps, but the bare loop gives {} ps", name, ours, floor));
  }
  const Comparison times =
      compare([&] { simulate(graph, costs, machines, {.network = network}); }, [&] { bare.run(); });
  const double tasks = graph.tasks();
  report.add({name, "tasks/s", tasks / times.subject.median_s, "bare_loop",
              tasks / times.reference.median_s});
}

int run_all(const std::string& json) {
  Report report;
  const TaskGraph ring = one_after_the_other("ring", 40);
  run_case(report, "port.ring64x40", sim::Network::kPort, ring);
  run_case(report, "port.ps64x40", sim::Network::kPort, one_after_the_other("ps", 40));
  const TaskGraph rings = concurrent("ring", 82);
  run_case(report, "port.ring64_concurrent82", sim::Network::kPort, rings);
  run_case(report, "fair.ring64_concurrent82", sim::Network::kFair, rings);
  report.write(json);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  std::string json;
  return hipress::io::run_tool(
      argc, argv,
      {"bench_sim", "Times the simulator beside a bare loop over the same graphs.",
       "bench_sim --json bench_sim.json"},
      [&](CLI::App& app) { app.add_option("--json", json, "also write the rows to this file"); },
      [&] { return hipress::bench::run_all(json); });
}
