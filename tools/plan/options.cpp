#include "tools/plan/options.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "io/processors.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "planner/problem/choices.hpp"
#include "plans/plan_file.hpp"
#include "tools/frame.hpp"
#include "tools/options/shared.hpp"

namespace hipress::planner {

unsigned default_jobs() {
  constexpr std::size_t kMost = 4;
  return static_cast<unsigned>(std::min(io::usable_cores().size(), kMost));
}

namespace {

constexpr std::uint32_t kDefaultNodes = 16;  // SeCoPa.py's
constexpr double kMaxBudget_s = 1e6;         // 12 days

/// Of "powersgd(rank=1|2)", what it is short for: an algorithm with each of a parameter's values.
void add_alternatives(const std::string& name, std::vector<std::string>& names) {
  const std::size_t bar = name.find('|');
  const std::size_t equals = name.rfind('=', bar);
  if (bar == std::string::npos || equals == std::string::npos) {
    names.push_back(name);
    return;
  }
  const std::size_t end = std::min(name.find_first_of(",)", bar), name.size());
  for (std::size_t first = equals + 1; first <= end;) {
    const std::size_t last = std::min(name.find('|', first), end);
    add_alternatives(
        name.substr(0, equals + 1) + name.substr(first, last - first) + name.substr(end), names);
    first = last + 1;
  }
}

/// All algorithms that a list names.
std::vector<std::string> named_algorithms(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& name : kernels::split_algorithms(text)) add_alternatives(name, names);
  return names;
}

/// The algorithms of a list, or none of "none".
std::vector<std::string> allowed_algorithms(const std::string& text) {
  if (text == "none") return {};
  const std::vector<std::string> names = named_algorithms(text);
  for (const std::string& name : names) algorithm(name);  // refuses what is unknown
  return names;
}

Limits limits_of(const Options& options) {
  return {.budget_s = options.budget_s.value_or(Limits{}.budget_s),
          .evaluations = options.evaluations.value_or(-1),
          .seed = options.seed,
          .jobs = options.jobs};
}

void declare(CLI::App& app, AnalysisOptions& options) {
  const char* looking = "Looking at a plan";
  app.add_flag("--explain", options.explain,
               "Say of every gradient why it is decided so, what the next best option would cost, "
               "and what memory the plan takes")
      ->group(looking);
  app.add_option("--compare", options.compare,
                 "Lay the plan beside this one (a file, or none, all, fp16 …): times, bytes, and "
                 "what each difference is worth alone")
      ->group(looking);
  app.add_option("--plan", options.plan,
                 "Explain or compare this plan (a file or a name) instead of searching one; "
                 "nothing is written")
      ->group(looking);
  const char* robust = "Planning for what is not as expected";
  app.add_flag("--robust", options.robust,
               "Choose the plan with the best 90th percentile of the iteration time, under "
               "--jitter and --bandwidth-uncertainty")
      ->group(robust);
  app.add_option("--jitter", options.jitter,
                 "Factor that each task's time is drawn with: lognormal:S, uniform:W, samples:FILE "
                 "(as in hipress-sim)")
      ->group(robust);
  app.add_option("--bandwidth-uncertainty", options.bandwidth_uncertainty,
                 "0.2 for links with 80 to 120 % of their bandwidth")
      ->check(tools::number_from(0, 0.99))
      ->group(robust);
  app.add_option("--replicas", options.replicas, "Draws that plans are compared on (default 100)")
      ->check(tools::count_from(1, 100'000))
      ->group(robust);
  const char* passes = "Passes, which polish the plan after search timeline";
  app.add_option("--disable-pass", options.disabled_passes, "Passes to leave out, with commas")
      ->group(passes);
  app.add_flag("--list-passes", options.list_passes, "Say which passes there are, and end")
      ->group(passes);
}

}  // namespace

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      ->each([&](const std::string&) { options.input_given = true; })
      ->capture_default_str();
  app.add_option("--job", options.job,
                 "What is planned: mean (gradients are averaged), or broadcast (one node's tensors "
                 "go to all others: parameters at the start, weights to samplers)")
      ->check(CLI::IsMember({"mean", "broadcast"}))
      ->capture_default_str();
  BroadcastOptions& broadcast = options.broadcast;
  app.add_option("--bytes", broadcast.bytes, "Broadcast one tensor of so many, say 64MB");
  app.add_option("--dtype", broadcast.dtype,
                 "Of --bytes: float32 (the default), float16 or bfloat16");
  app.add_option("--root", broadcast.root, "Node that broadcasts (default 0)")
      ->check(tools::count_from(0, UINT32_MAX));
  app.add_option("--chunks", broadcast.chunks,
                 "Chunks of the largest tensor of a broadcast (default: the best of all counts)")
      ->check(tools::count_from(1, 1u << 20));
  app.add_flag("--lossless", broadcast.lossless, "Refuse algorithms that change what is broadcast");
  app.add_option(
         "--topology", options.topology,
         fmt::format(
             "One of {} (allreduce: nothing compressed but by low rank), or BEST: all of them, and "
             "all-reduce for what others do not compress (search timeline); of a broadcast {} "
             "(which encodes anew on every node, for comparison), or BEST, the default",
             casync::strategy_names(casync::Operation::kMean),
             casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { options.topology_given = true; })
      ->capture_default_str();
  app.add_option("--nnodes", options.nodes, "Number of nodes (default: the cluster's, else 16)")
      ->check(tools::count_from(1, 1u << 20));
  tools::declare(app, options.machines, "default: published with SeCoPa");
  tools::declare(app, options.times);
  app.add_option(
         "--algorithm", options.algorithms,
         "Algorithms that the plan may use, separated by commas (fp16 only if it is "
         "listed), or none; 'powersgd(rank=1|2|4)' for one with several values. All average "
         "gradients but dgc with a momentum, which is an optimizer of its own. Default of a "
         "broadcast: those that lose nothing")
      ->each([&](const std::string&) { options.algorithms_given = true; })
      ->capture_default_str();
  app.add_option("--write", options.write,
                 "What is written where compressing is not advised: advised (the best plan without "
                 "compression), or fastest")
      ->check(CLI::IsMember({"advised", "fastest"}))
      ->capture_default_str();
  app.add_option(
      "--coarsest", options.coarsest,
      "Leave out algorithms that give up more than this one: " + describe_accuracy_order());
  app.add_option(
         "--accuracy", options.accuracy,
         "Place of a program in that order: tern.pse=terngrad, or 1 (fp16) to 4 (default: 4, as "
         "coarse as dgc); may be given several times")
      ->allow_extra_args(false);
  app.add_option(
      "--search", options.search,
      "One of: " + search_names() + " (default: timeline with a profile or cluster, else secopa)");
  app.add_option("--grouping", options.grouping,
                 "Whether to search bulk groups and batches too: any, none, or auto (any if the "
                 "output is X.yaml, which can say them)")
      ->check(CLI::IsMember({"any", "none", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--transfer-order", options.transfer_order,
         "Which waiting message goes first: ready, need (as in hipress-sim), or the best; of plans "
         "that are given, else as they say")
      ->check(CLI::IsMember({"ready", "need", "best"}))
      ->each([&](const std::string& name) {
        if (name != "best") options.analysis.order = sim::parse_transfer_order(name);
      })
      ->capture_default_str();
  app.add_option("--network", options.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--budget", options.budget_s,
                 "Seconds for search timeline, and the passes after it (default 2)")
      ->check(tools::number_from(0, kMaxBudget_s));
  app.add_option("--evaluations", options.evaluations,
                 "Simulations for search timeline, instead of --budget")
      ->check(tools::count_from(0, INT64_MAX));
  app.add_option("--tolerance", options.tolerance,
                 "How much longer an iteration may be, relatively, for compressing less")
      ->check(tools::number_from(0, 0.5))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the search's random moves")
      ->check(tools::count_from(0))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "Threads that simulate (default: one per core, at most 4)")
      ->check(tools::count_from(1, 1024));
  app.add_option("--output", options.output,
                 "Plan to write: SeCoPa's text, or X.yaml with everything")
      ->capture_default_str();
  app.add_flag(
      "--baselines", options.baselines,
      "Print the times of the plan and its baselines (implied by --profile, --cluster, X.yaml)");
  tools::declare(app, options.trust);
  declare(app, options.analysis);
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

namespace {

const casync::Strategy& find_topology(const std::string& name) {
  try {
    return casync::find_strategy(name);
  } catch (const std::invalid_argument& error) {
    throw io::InputError(fmt::format("{}, and BEST, which chooses among them", error.what()));
  }
}

}  // namespace

std::string topology_of(const Options& options, const SearchRow& search) {
  std::string asked = options.topology;
  const std::string& plan = options.analysis.plan;
  if (!options.topology_given && !plan.empty()) {
    asked = plans::topology_of_plan(plan).value_or(asked);
  }
  std::string name = asked;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name != "best") {
    const casync::Strategy& strategy = find_topology(asked);
    if (strategy.operation == casync::Operation::kMean) return std::string(strategy.name);
    throw io::InputError(
        fmt::format("topology {} does not average gradients: take one of {}, or BEST",
                    strategy.name, casync::strategy_names(casync::Operation::kMean)));
  }
  if (!search.optimises) {
    throw io::InputError(fmt::format(
        "--topology BEST compares simulated times, which search {} does not: take --search "
        "timeline, or one of {}",
        search.name, casync::strategy_names(casync::Operation::kMean)));
  }
  return name;
}

namespace {

/// SeCoPa's formulas know messages of slices. A list of nothing else is left, for the search to
/// refuse.
void leave_out_stages(const SearchRow& search, Problem& problem) {
  if (search.simulates) return;
  std::vector<std::string> kept = of_slices(problem.algorithms);
  if (kept.empty() || kept.size() == problem.algorithms.size()) return;
  spdlog::warn(
      "search {} has no formulas for algorithms that send factors of whole gradients: they are "
      "left "
      "out; --search timeline plans them",
      search.name);
  problem.algorithms = std::move(kept);
}

}  // namespace

Problem problem_of(const Options& options, const SearchRow& search, const models::Model& model) {
  Problem problem = {.model = model,
                     .strategy = topology_of(options, search),
                     .nodes = options.nodes > 0 ? options.nodes : kDefaultNodes,
                     .algorithms = allowed_algorithms(options.algorithms)};
  problem.accuracy = parse_accuracy(options.accuracy);
  if (!options.coarsest.empty()) {
    problem.algorithms = problem.accuracy.not_coarser(problem.algorithms, options.coarsest);
  }
  leave_out_stages(search, problem);
  if (problem.algorithms.empty() && !search.optimises) {
    throw io::InputError(
        fmt::format("search {} needs an algorithm to decide on: allow one, or take --search "
                    "timeline",
                    search.name));
  }
  const bool any = options.grouping == "any" || (options.grouping == "auto" && options.yaml());
  problem.grouping = any ? Grouping::kAny : Grouping::kNone;
  problem.transfer_order = options.transfer_order == "best"   ? OrderChoice::kBest
                           : options.transfer_order == "need" ? OrderChoice::kNeed
                                                              : OrderChoice::kReady;
  problem.limits = limits_of(options);
  problem.tolerance = options.tolerance;
  problem.trust = options.trust;
  problem.trust.named = named_algorithms(options.algorithms);
  return problem;
}

void warn_of_assumptions(const Options& options, const Problem& problem) {
  for (const std::string& name : problem.algorithms) {
    const std::string note = kernels::optimizer_note(name);
    if (!note.empty()) spdlog::warn("{}", note);
    if (!problem.accuracy.is_assumed(name)) continue;
    spdlog::warn(
        "how much {} gives up is not known: it is taken to be as coarse as dgc; --accuracy "
        "{}=terngrad, say, tells where it belongs",
        name, name);
  }
  for (const auto& [name, place] : problem.accuracy.places) {
    const auto is_it = [&](const std::string& algorithm) {
      return algorithm == name || algorithm.starts_with(name + "(");
    };
    const std::vector<std::string> named = named_algorithms(options.algorithms);
    if (std::none_of(named.begin(), named.end(), is_it)) {
      spdlog::warn("--accuracy {}=… has no effect: --algorithm does not name it", name);
    }
  }
}

void warn_of_unused(const Options& options, const SearchRow& search) {
  if (search.has_budget) return;
  const auto warn = [&](const char* option) {
    if (search.optimises) {
      spdlog::warn(
          "{} is for the passes alone: search {} goes on until it is done (or interrupted)", option,
          search.name);
    } else {
      spdlog::warn("{} has no effect: search {} does not iterate", option, search.name);
    }
  };
  if (options.budget_s) warn("--budget");
  if (options.evaluations) warn("--evaluations");
}

}  // namespace hipress::planner
