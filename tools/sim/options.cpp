#include "tools/sim/options.hpp"

#include <fmt/format.h>

#include "casync/strategy.hpp"
#include "costs/description.hpp"
#include "planner/baselines/named_plans.hpp"
#include "tools/options/shared.hpp"
#include "tools/validators.hpp"

namespace hipress::sim {

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("--input", line.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed "
                 "with the plan YAML of a broadcast");
  app.add_option(
         "--plan", line.plan,
         "Plan file, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made for "
         "these machines: " +
             planner::named_plans())
      ->required();
  app.add_option("--evaluations", line.evaluations,
                 "Plans that a search for --plan simulates; more: a better plan, later")
      ->capture_default_str()
      ->check(tools::count_from(1));
  app.add_option(
         "--topology", line.topology,
         fmt::format("one of {}, BEST for a plan that is made, or of a broadcast {} (default: "
                     "what a plan YAML says, else ps)",
                     casync::strategy_names(casync::Operation::kMean),
                     casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { line.given.topology = true; });
  app.add_option("--nnodes", line.nodes,
                 "Number of nodes (default: the cluster's, else what a plan YAML says, else 16)")
      ->check(tools::count_from(1, 1u << 20));
  app.add_option("--algorithm", line.algorithm,
                 "Codec of plan entries that are compressed but name none")
      ->capture_default_str()
      ->each([&](const std::string& name) { line.given.algorithm = name; });
  tools::declare(app, line.machines,
                 fmt::format("default: {}, published for V100s", costs::kDefaultProfile));
  tools::declare(app, line.times);
  app.add_option("--network", line.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str()
      ->each([&](const std::string&) { line.given.network = true; });
  app.add_option("--fold", line.fold,
                 "Simulate one node for all where they do the same: auto (where that is exact), "
                 "never, or always (with bounds where slices are unequal)")
      ->capture_default_str();
  app.add_option(
         "--transfer-order", line.transfer_order,
         "ready (first come, first served) or need (of the next forward pass); default: what the "
         "plan says, else ready")
      ->each([&](const std::string&) { line.given.transfer_order = true; });
  app.add_option(
      "--jitter", line.jitter,
      "Factor that each task's time is drawn with: lognormal:S, uniform:W, samples:FILE");
  app.add_option("--seed", line.seed, "Of the jitter's draws")
      ->check(tools::count_from(0))
      ->capture_default_str()
      ->each([&](const std::string&) { line.given.seed = true; });
  app.add_option("--replicas", line.replicas,
                 "Simulate so many draws of the jitter, and print the percentiles")
      ->capture_default_str()
      ->check(tools::count_from(1, 1'000'000));
  app.add_option("--jobs", line.jobs, "Replicas at a time (default: one per core)")
      ->check(tools::count_from(1, 4096))
      ->each([&](const std::string&) { line.given.jobs = true; });
  app.add_option("--trace", line.trace, "Write the timeline as Chrome/Perfetto JSON")
      ->check(tools::file_name());
  app.add_option(
         "--export-chakra", line.chakra,
         "Write the simulated graph as Chakra execution traces, one per node, into a folder")
      ->check(tools::file_name());
  tools::declare(app, line.plan_options);
  tools::declare(app, line.trust);
  app.add_flag("--steady{8}", line.steady,
               "Iterations back to back, without a barrier: the period that so many (8) settle to")
      ->check(tools::count_from(2, 1024));
  app.add_flag("--sensitivity", line.sensitivity,
               "Also simulate with bandwidth, latency, codecs, compute … each 10 % better");
  app.add_flag("--explain-interval", line.explains_interval,
               "Say how much of the interval comes of kernels, links, computation and the "
               "simulator's own error");
  app.add_flag("--json", line.json, "Print one JSON object instead of the report");
}

}  // namespace hipress::sim
