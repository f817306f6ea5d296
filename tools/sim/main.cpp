// hipress-sim: predicts one iteration of a plan; `hipress-sim sweep` many.

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "costs/description.hpp"
#include "costs/levels.hpp"
#include "costs/machine_options.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "io/yaml.hpp"
#include "models/time_options.hpp"
#include "planner/baselines/named_plans.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_file.hpp"
#include "plans/plan_options.hpp"
#include "sim/critical_path.hpp"
#include "sim/effect.hpp"
#include "sim/graph_size.hpp"
#include "tools/frame.hpp"
#include "tools/options/shared.hpp"
#include "tools/sim/chakra_command.hpp"
#include "tools/sim/report.hpp"
#include "tools/sim/sweep_command.hpp"
#include "traces/chakra_graph.hpp"

namespace {

using namespace hipress;

constexpr std::string_view kAnyTopology = "best";

struct Options {
  std::string input;
  std::string plan;
  std::int64_t evaluations = sim::kEvaluations;
  std::string topology = "PS";
  std::uint32_t nodes = 0;  ///< 0: as the cluster file says
  std::string algorithm = "onebit";
  costs::MachineOptions machines;
  models::TimeOptions times;
  std::string network = "fair";
  std::string trace;
  std::string chakra;  ///< folder; empty: none is written
  std::string fold = "auto";
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int steady = 0;  ///< iterations back to back; 0: one, with a barrier at its end
  std::string transfer_order = "ready";
  std::string jitter;  ///< empty: none
  std::uint64_t seed = 0;
  std::uint32_t replicas = 1;
  unsigned jobs = 0;  ///< 0: one per usable core
  bool sensitivity = false;
  bool explains_interval = false;
  bool json = false;
  sim::Given given;  ///< what the command line named
};

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed "
                 "with the plan YAML of a broadcast");
  app.add_option(
         "--plan", options.plan,
         "Plan file, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made for "
         "these machines: " +
             planner::named_plans())
      ->required();
  app.add_option("--evaluations", options.evaluations,
                 "Plans that a search for --plan simulates; more: a better plan, later")
      ->capture_default_str()
      ->check(tools::count_from(1));
  app.add_option(
         "--topology", options.topology,
         fmt::format("one of {}, BEST for a plan that is made, or of a broadcast {} (default: "
                     "what a plan YAML says, else ps)",
                     casync::strategy_names(casync::Operation::kMean),
                     casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { options.given.topology = true; });
  app.add_option("--nnodes", options.nodes,
                 "Number of nodes (default: the cluster's, else what a plan YAML says, else 16)")
      ->check(tools::count_from(1, 1u << 20));
  app.add_option("--algorithm", options.algorithm,
                 "Codec of plan entries that are compressed but name none")
      ->capture_default_str()
      ->each([&](const std::string& name) { options.given.algorithm = name; });
  tools::declare(app, options.machines,
                 fmt::format("default: {}, published for V100s", costs::kDefaultProfile));
  tools::declare(app, options.times);
  app.add_option("--network", options.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str()
      ->each([&](const std::string&) { options.given.network = true; });
  app.add_option("--fold", options.fold,
                 "Simulate one node for all where they do the same: auto (where that is exact), "
                 "never, or always (with bounds where slices are unequal)")
      ->capture_default_str();
  app.add_option(
         "--transfer-order", options.transfer_order,
         "ready (first come, first served) or need (of the next forward pass); default: what the "
         "plan says, else ready")
      ->each([&](const std::string&) { options.given.transfer_order = true; });
  app.add_option(
      "--jitter", options.jitter,
      "Factor that each task's time is drawn with: lognormal:S, uniform:W, samples:FILE");
  app.add_option("--seed", options.seed, "Of the jitter's draws")
      ->check(tools::count_from(0))
      ->capture_default_str()
      ->each([&](const std::string&) { options.given.seed = true; });
  app.add_option("--replicas", options.replicas,
                 "Simulate so many draws of the jitter, and print the percentiles")
      ->capture_default_str()
      ->check(tools::count_from(1, 1'000'000));
  app.add_option("--jobs", options.jobs, "Replicas at a time (default: one per core)")
      ->check(tools::count_from(1, 4096))
      ->each([&](const std::string&) { options.given.jobs = true; });
  app.add_option("--trace", options.trace, "Write the timeline as Chrome/Perfetto JSON")
      ->check(tools::file_name());
  app.add_option(
         "--export-chakra", options.chakra,
         "Write the simulated graph as Chakra execution traces, one per node, into a folder")
      ->check(tools::file_name());
  tools::declare(app, options.plan_options);
  tools::declare(app, options.trust);
  app.add_flag("--steady{8}", options.steady,
               "Iterations back to back, without a barrier: the period that so many (8) settle to")
      ->check(tools::count_from(2, 1024));
  app.add_flag("--sensitivity", options.sensitivity,
               "Also simulate with bandwidth, latency, codecs, compute … each 10 % better");
  app.add_flag("--explain-interval", options.explains_interval,
               "Say how much of the interval comes of kernels, links, computation and the "
               "simulator's own error");
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

/// As asked for; of what the command line leaves open, a cluster file decides before a plan YAML.
std::uint32_t nodes_of(const Options& options) {
  if (options.nodes > 0) return options.nodes;
  const std::string& file = options.machines.cluster;
  const bool file_says = !file.empty() && io::YamlNode::load(file).has("nodes");
  return file_says ? 0 : plans::nodes_of_plan(options.plan).value_or(0);
}

costs::LoadedMachines load_machines(const Options& options) {
  constexpr std::uint32_t kDefaultNodes = 16;
  return costs::load(options.machines, nodes_of(options), kDefaultNodes);
}

void say(const std::vector<std::string>& diagnostics) {
  for (const std::string& diagnostic : diagnostics) spdlog::info("{}", diagnostic);
}

/// Of a plan that is made, the topology may be left open; a plan YAML says its own.
bool leaves_topology_open(const Options& options) {
  if (options.topology != kAnyTopology && options.topology != "BEST") return false;
  if (planner::is_named_plan(options.plan) || plans::topology_of_plan(options.plan)) return true;
  throw io::InputError(fmt::format(
      "--topology BEST is for plans that are made for the machines ({}), and plan {} is not: give "
      "its topology, {}",
      planner::named_plans(), io::quote(options.plan),
      casync::strategy_names(casync::Operation::kMean)));
}

std::string strategy_of(const Options& options) {
  if (leaves_topology_open(options)) {
    return plans::topology_of_plan(options.plan).value_or(std::string(kAnyTopology));
  }
  const std::string asked(casync::find_strategy(options.topology).name);
  return options.given.topology ? asked : plans::topology_of_plan(options.plan).value_or(asked);
}

/// A plan for so many nodes may be for the cluster with its GPUs at another level.
costs::Cluster at_level_of(const costs::Cluster& cluster, std::uint32_t nodes) {
  costs::Cluster found = costs::with_nodes(cluster, nodes);
  if (found.nodes != cluster.nodes) spdlog::info("{}", costs::describe_levels(found));
  return found;
}

sim::Scenario load(const Options& options) {
  const sim::Network network = sim::parse_network(options.network);
  const std::string strategy = strategy_of(options);
  std::vector<std::string> assumed;
  models::Model model =
      plans::read_input(options.input, options.plan, strategy, options.times, assumed);
  say(assumed);
  costs::LoadedMachines machines = load_machines(options);
  say(machines.diagnostics);
  for (const std::string& warning : machines.warnings) spdlog::warn("{}", warning);
  const std::optional<std::uint32_t> planned = plans::nodes_of_plan(options.plan);
  costs::Cluster cluster = at_level_of(machines.cluster, planned.value_or(machines.cluster.nodes));
  const plans::PlanContext context = {.model = model,
                                      .strategy = strategy,
                                      .nodes = cluster.nodes,
                                      .algorithm = options.algorithm,
                                      .trust = options.trust};
  plans::ResolvedPlan resolved = planner::resolve_plan(
      options.plan, context, {.profile = machines.profile, .cluster = cluster, .network = network},
      options.evaluations);
  plans::apply(options.plan_options, context, resolved);
  casync::Plan plan = std::move(resolved.plan);
  if (plan.nodes != cluster.nodes) cluster = at_level_of(cluster, plan.nodes);
  plan.gpus_per_node = cluster.gpus_per_node;
  sim::Scenario scenario{std::move(model), std::move(plan), std::move(machines.profile),
                         std::move(cluster), network};
  scenario.iterations = std::max(options.steady, 1);
  scenario.transfer_order = sim::parse_transfer_order(options.transfer_order);
  if (!options.given.transfer_order && resolved.transfer_order) {
    scenario.transfer_order = *resolved.transfer_order;
  }
  scenario.draws.seed = options.seed;
  if (!options.jitter.empty()) {
    scenario.jitter = std::make_shared<const sim::Jitter>(sim::Jitter::parse(options.jitter));
  }
  return scenario;
}

constexpr std::uint32_t kStressed = 2;  // simulations that an interval takes

unsigned jobs_of(const Options& options) {
  return options.jobs > 0 ? options.jobs : static_cast<unsigned>(io::usable_cores().size());
}

/// What would make the graph of this scenario smaller.
std::string smaller(const sim::Scenario& scenario, casync::Folding folding,
                    const Options& options) {
  using casync::Foldability;
  std::string text = "give ";
  const Foldability verdict = sim::foldability(scenario);
  if (folding == casync::Folding::kNone && verdict.kind != Foldability::kImpossible) {
    if (!options.trace.empty()) text += "no --trace, which shows every node, ";
    if (!options.chakra.empty()) text += "no --export-chakra, which has every node, ";
    text += verdict.kind == Foldability::kExact
                ? "--fold auto (all nodes do the same: one is simulated), "
                : "--fold always (one node is simulated for all, with bounds), ";
  }
  if (scenario.iterations > 2) text += "fewer iterations to --steady, ";
  if (options.replicas > 1) text += "fewer --jobs, ";
  if (scenario.plan.bulk.threshold_bytes == 0) {
    text += "--bulk-threshold 1MiB (small gradients together), ";
  }
  return text + "fewer nodes (--nnodes), or fewer partitions K per gradient (a plan file)";
}

void expand(const sim::Scenario& scenario, const Options& options, sim::Prediction& prediction) {
  sim::Fold fold = sim::parse_fold(options.fold);
  for (const auto& [option, given] : {std::pair("--trace", !options.trace.empty()),
                                      std::pair("--export-chakra", !options.chakra.empty())}) {
    if (!given) continue;
    if (options.fold == "always") {
      throw io::InputError(
          fmt::format("{} shows every node, --fold always one: leave one of them out", option));
    }
    fold = sim::Fold::kNever;
  }
  sim::FoldingChoice choice = sim::choose_folding(scenario, fold);
  const sim::Beside beside = {
      .replicas = std::min(jobs_of(options), std::max(options.replicas, kStressed)),
      .changed_graph = options.sensitivity};
  sim::require_room(sim::graph_size(scenario, choice.folding, beside), io::available_memory(),
                    smaller(scenario, choice.folding, options));
  prediction.graph = sim::expand(scenario, choice.folding);
  if (!choice.exact) prediction.folding_bounds = sim::folding_bounds(scenario);
  prediction.why_whole = std::move(choice.why_whole);
}

sim::Prediction predict(const sim::Scenario& scenario, const Options& options) {
  sim::Prediction prediction;
  expand(scenario, options, prediction);
  if (options.machines.profile.empty()) {
    prediction.default_profile = costs::describe_origin(scenario.profile, false);
  }
  prediction.names = casync::unit_names(casync::make_layout(scenario.model, scenario.plan));
  const auto start = std::chrono::steady_clock::now();
  prediction.result = sim::simulate(scenario, prediction.graph, sim::Timelines::kRecorded);
  prediction.simulation_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  prediction.iteration = prediction.result.iteration;
  if (scenario.iterations > 1) {
    prediction.steady =
        sim::steady_state(prediction.graph, prediction.result.timeline, scenario.iterations);
    prediction.iteration = prediction.steady->period;
  }
  prediction.response =
      sim::respond(scenario, prediction.graph, casync::to_seconds(prediction.iteration),
                   casync::to_seconds(sim::compute_time(prediction)), jobs_of(options));
  prediction.critical_path = sim::critical_path(prediction.graph, prediction.result.timeline);
  prediction.utilisation = sim::utilisation(scenario, prediction.graph, prediction.result);
  if (options.replicas > 1) {
    prediction.replicas =
        sim::run_replicas(scenario, prediction.graph, options.replicas, jobs_of(options));
  }
  prediction.explains_interval = options.explains_interval;
  if (options.sensitivity) {
    prediction.sensitivities = sim::sensitivities(scenario, prediction.graph, prediction.iteration);
  }
  return prediction;
}

void write_trace(const Options& options, const sim::Scenario& scenario,
                 const sim::Prediction& prediction) {
  io::write_file(options.trace, [&](std::ostream& out) {
    traces::write_chrome_trace(
        out, prediction.graph, prediction.names, {&prediction.result.timeline},
        {.model = scenario.model.name, .plan = plans::title(options.plan, scenario.plan)});
  });
}

/// What is exported is simulated again from its tasks, which know neither draws nor iterations.
void check_export(const Options& options) {
  if (options.chakra.empty()) return;
  if (!options.jitter.empty() || options.steady > 0) {
    throw io::InputError(
        "--export-chakra has one iteration at nominal times: leave out --jitter and --steady");
  }
}

void export_chakra(const Options& options, const sim::Scenario& scenario,
                   sim::Prediction& prediction) {
  traces::ChakraGraph what;
  what.names = prediction.names;
  for (const casync::Algorithm& algorithm : scenario.plan.algorithms) {
    what.algorithms.push_back(algorithm.name);
  }
  what.model = scenario.model.name;
  what.plan = plans::title(options.plan, scenario.plan);
  what.profile = scenario.profile.name;
  what.network = sim::to_string(scenario.network);
  what.transfer_order = casync::to_string(scenario.transfer_order);
  what.gpus_per_node = scenario.plan.gpus_per_node;
  what.iteration = prediction.iteration;
  what.timeline = prediction.result.timeline;
  what.graph = std::move(prediction.graph);
  traces::write_chakra_graph(options.chakra, what);
  prediction.graph = std::move(what.graph);
}

void warn_of_unused(const sim::Scenario& scenario, const sim::Prediction& prediction,
                    const Options& options) {
  sim::Given given = options.given;
  given.plan = options.plan;
  given.plan_options = options.plan_options;
  // The plan has been read: what it brings was found trusted then.
  given.trust = {.named = {options.algorithm}, .everything = options.trust.everything};
  given.replicas = options.replicas;
  given.profile = !options.machines.profile.empty();
  const sim::PlanSource source = planner::plan_source();
  const sim::PlannedName* made = source.find(options.plan);
  if (made != nullptr && made->depends_on_machines) {
    // Another plan would have to be searched, which is not worth a warning.
    given.topology = false;
    given.algorithm.reset();
    given.plan_options = {};
  } else if (made != nullptr) {
    given.resolve = [&](const plans::PlanContext& context) {
      return planner::resolve_plan(options.plan, context,
                                   {scenario.profile, scenario.cluster, scenario.network});
    };
  }
  const bool at_given_levels = load_machines(options).cluster.nodes == scenario.cluster.nodes;
  if (at_given_levels) given.cluster = options.machines.cluster;
  for (const std::string& sentence :
       sim::without_effect(scenario, prediction.graph, prediction.result, given)) {
    spdlog::warn("{}", sentence);
  }
}

/// Costs of the prediction that nobody measured.
void warn_of_estimates(const sim::Scenario& scenario, const sim::Prediction& prediction) {
  for (const casync::Algorithm& algorithm : scenario.plan.algorithms) {
    const std::string diagnostic = costs::foreign_costs(scenario.profile, algorithm.name);
    if (!diagnostic.empty()) spdlog::warn("{}", diagnostic);
  }
  for (casync::TaskId id = 0; id < prediction.graph.tasks(); ++id) {
    if (prediction.graph[id].kind != casync::Kind::kAllReduce) continue;
    const costs::AllReduceCosts costs(scenario.profile);
    const std::string diagnostic = costs.diagnostic(prediction.graph.nodes);
    if (!diagnostic.empty()) spdlog::warn("{}", diagnostic);
    return;
  }
}

int run(const Options& options) {
  if (options.replicas > 1 && options.jitter.empty()) {
    throw io::InputError("--replicas: without --jitter all would be the same; give one of them");
  }
  check_export(options);
  if (!options.trace.empty()) io::require_writable(options.trace);
  const sim::Scenario scenario = load(options);
  if (!options.trace.empty()) io::refuse_input(options.trace);
  sim::Prediction prediction = predict(scenario, options);
  if (options.json) {
    sim::print_json(std::cout, scenario, prediction);
  } else {
    sim::print_report(std::cout, scenario, prediction);
  }
  // Last, so that a full disk costs nothing but the trace.
  if (!options.trace.empty()) write_trace(options, scenario, prediction);
  if (!options.chakra.empty()) export_chakra(options, scenario, prediction);
  warn_of_estimates(scenario, prediction);
  warn_of_unused(scenario, prediction, options);
  return 0;
}

int run_single(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-sim",
      .purpose =
          "Predicts one iteration of a plan: when every gradient is synchronised, and what that "
          "waits for.\nMany at once, to CSV: hipress-sim sweep SPEC.yaml --output FILE.csv (see "
          "hipress-sim sweep --help).\nA graph that --export-chakra wrote: hipress-sim --chakra "
          "FOLDER (see hipress-sim --chakra FOLDER --help).",
      .example =
          "hipress-sim --input vgg19 --plan all --topology RING --nnodes 8 --algorithm onebit"};
  return tools::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}

}  // namespace

int main(int argc, char** argv) {
  const bool sweeps = argc > 1 && argv[1] == std::string_view("sweep");
  const bool reads_graph = std::any_of(argv + std::min(argc, 1), argv + argc, [](const char* one) {
    return std::string_view(one) == "--chakra" || std::string_view(one).starts_with("--chakra=");
  });
  if (reads_graph && !sweeps) return sim::run_chakra_command(argc, argv);
  return sweeps ? sim::run_sweep_command(argc - 1, argv + 1, planner::plan_source())
                : run_single(argc, argv);
}
