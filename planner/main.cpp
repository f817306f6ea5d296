// hipress-plan: decides per gradient whether to compress it, and into how many partitions. Without
// a profile it does what SeCoPa.py did, from the same options to the same file.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/tool.hpp"
#include "planner/baselines.hpp"
#include "planner/choices.hpp"
#include "planner/search.hpp"
#include "plans/plan_builder.hpp"

namespace {

using namespace hipress;
using Json = nlohmann::ordered_json;

constexpr std::uint32_t kDefaultNodes = 16;  // SeCoPa.py's
constexpr const char* kPublishedProfile = "sosp21";

struct Options {
  std::string input = "input.txt";
  std::string topology = "PS";
  std::uint32_t nodes = 0;  ///< 0: the cluster file's, else kDefaultNodes
  std::string profile;      ///< empty: the costs published with SeCoPa
  std::string cluster;
  std::string algorithms = "onebit,fp16";
  std::string coarsest;  ///< empty: any
  std::string search;    ///< empty: timeline with a profile or cluster, else secopa
  std::string grouping = "auto";
  std::string transfer_order = "ready";
  std::string network = "fair";
  std::optional<double> budget_s;
  std::optional<std::int64_t> evaluations;
  std::uint64_t seed = 0;
  unsigned jobs = 1;
  std::string output = "SeCoPaPlan.txt";
  bool json = false;
  bool baselines = false;

  bool yaml() const { return output.ends_with(".yaml") || output.ends_with(".yml"); }
  /// The drop-in for SeCoPa.py answers at once: it simulates nothing.
  bool simulates() const {
    return json || baselines || yaml() || !profile.empty() || !cluster.empty();
  }
  std::string search_name() const {
    if (!search.empty()) return search;
    return profile.empty() && cluster.empty() ? "secopa" : "timeline";
  }
};

/// Set by the first interrupt; the second one ends the program.
std::atomic<bool> interrupted = false;

void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

/// Simulated iteration times of the plan and of what it is compared with.
struct Comparison {
  std::optional<double> planned_s;  ///< none: its graph is too large
  std::vector<planner::Baseline> baselines;
};

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      ->capture_default_str();
  app.add_option("--topology", options.topology, "PS, RING, or BEST of both (search timeline)")
      ->capture_default_str();
  app.add_option("--nnodes", options.nodes, "Number of nodes (default: the cluster's, else 16)")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--profile", options.profile,
                 "Costs: a profile.yaml or a shipped profile (default: published with SeCoPa)");
  app.add_option("--cluster", options.cluster, "Cluster YAML; what it leaves out is the profile's");
  app.add_option("--algorithm", options.algorithms,
                 "Algorithms that the plan may use, with commas; none")
      ->capture_default_str();
  app.add_option("--coarsest", options.coarsest,
                 "Leave out algorithms that give up more than this one: none < fp16, bf16 < "
                 "terngrad, tbq < onebit < dgc, graddrop");
  app.add_option("--search", options.search,
                 "One of: " + planner::search_names() +
                     " (default: timeline with a profile or cluster, else secopa)");
  app.add_option("--grouping", options.grouping,
                 "Whether to search bulk groups and batches too: any, none, or auto (any if the "
                 "output is X.yaml, which can say them)")
      ->check(CLI::IsMember({"any", "none", "auto"}))
      ->capture_default_str();
  app.add_option("--transfer-order", options.transfer_order,
                 "Which waiting message goes first: ready, need (as in hipress-sim), or the best")
      ->check(CLI::IsMember({"ready", "need", "best"}))
      ->capture_default_str();
  app.add_option("--network", options.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--budget", options.budget_s,
                 "Seconds for a search that iterates (default 2); secopa does not")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--evaluations", options.evaluations,
                 "Simulations for a search that iterates, instead of --budget")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "Of the search's random moves")->capture_default_str();
  app.add_option("--jobs", options.jobs, "Threads that simulate")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  app.add_option("--output", options.output,
                 "Plan to write: SeCoPa's text, or X.yaml with everything")
      ->capture_default_str();
  app.add_flag(
      "--baselines", options.baselines,
      "Simulate the plan and its baselines (implied by --json, --profile, --cluster, X.yaml)");
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

/// Splits at commas outside parentheses: "tbq(tau=0.25),fp16".
std::vector<std::string> split_algorithms(const std::string& text) {
  if (text == "none") return {};
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (const std::string& name : names) planner::algorithm(name);  // refuses what is unknown
  return names;
}

/// Fits of fan-in and fan-out describe the profile's network; a cluster with other links has none.
costs::Profile on_cluster(costs::Profile profile, const costs::Cluster& cluster) {
  if (profile.link == cluster.link) return profile;
  profile.link = cluster.link;
  profile.fan_in.clear();
  profile.fan_out.clear();
  return profile;
}

void warn_of_unused(const Options& options, const planner::SearchRow& search) {
  if (search.simulates) return;
  if (options.budget_s)
    spdlog::warn("--budget has no effect: search {} does not iterate", search.name);
  if (options.evaluations) {
    spdlog::warn("--evaluations has no effect: search {} does not iterate", search.name);
  }
}

std::size_t count_compressed(const models::Model& model, const casync::Plan& plan) {
  std::size_t count = 0;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    count += plans::is_raw(model.gradients[g], plan, plan.decisions[g]) ? 0 : 1;
  }
  return count;
}

void write_plan(const Options& options, const models::Model& model, const casync::Plan& plan,
                const costs::Profile& profile, const std::optional<Comparison>& comparison) {
  if (options.yaml() && !comparison->planned_s) {
    throw io::InputError(
        "a plan YAML says the predicted time, but this plan's graph is too large "
        "to simulate; write the plan as text");
  }
  if (!options.yaml()) return plans::write_plan_text(options.output, model, plan);
  plans::write_plan_yaml(options.output, model, plan,
                         {.predicted_iteration_s = *comparison->planned_s,
                          .search = options.search_name(),
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.network});
}

void print_json(const models::Model& model, const planner::SearchResult& found, double search_s,
                const Comparison& comparison) {
  const auto seconds = [](const std::optional<double>& time) {
    return time ? Json(*time) : Json(nullptr);
  };
  Json baselines;
  for (const planner::Baseline& baseline : comparison.baselines) {
    baselines[std::string(baseline.name)] = seconds(baseline.iteration_s);
  }
  const Json report = {{"gradients", found.plan.decisions.size()},
                       {"compressed", count_compressed(model, found.plan)},
                       {"predicted_iteration_s", seconds(comparison.planned_s)},
                       {"lower_bound_s", nullptr},  // no search gives a bound
                       {"gap", nullptr},
                       {"evaluations", found.evaluations},
                       {"search_s", search_s},
                       {"baselines", baselines}};
  std::cout << report.dump(2) << '\n';
}

void print_table(const Options& options, const planner::Problem& problem,
                 const costs::Profile& profile, const Comparison& comparison) {
  fmt::print(std::cout, "\nsimulated iteration, profile {}, network {}:\n", profile.name,
             options.network);
  const auto line = [](std::string_view name, const std::optional<double>& seconds) {
    fmt::print(std::cout, "  {:<18}{:>10}\n", name,
               seconds ? io::format_duration(*seconds) : "too large");
  };
  for (const planner::Baseline& baseline : comparison.baselines) {
    line(baseline.name, baseline.iteration_s);
  }
  line("this plan", comparison.planned_s);
  if (!comparison.planned_s) return;
  if (const auto* faster =
          planner::faster_baseline(problem, comparison.baselines, *comparison.planned_s)) {
    fmt::print(std::cout, "  '{}' is faster than this plan\n", faster->name);
  }
}

/// "onebit and fp16": what the plan compresses with, or if nothing, what it might have.
std::string algorithms_of(const planner::Problem& problem, const casync::Plan& plan) {
  std::string names;
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    bool used = false;
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      used = used || (plan.decisions[g].algorithm == static_cast<std::int8_t>(i) &&
                      !plans::is_raw(problem.model.gradients[g], plan, plan.decisions[g]));
    }
    if (used) names += (names.empty() ? "" : ", ") + plan.algorithms[i].name;
  }
  if (!names.empty()) return names;
  return problem.algorithms.empty() ? "nothing" : planner::first_lossy(problem.algorithms);
}

void print_report(const Options& options, const planner::Problem& problem,
                  const casync::Plan& plan) {
  fmt::print(std::cout, "{}: {} gradients, {}, N = {}; {} compressed with {}\n", options.output,
             plan.decisions.size(), plan.strategy, plan.nodes,
             count_compressed(problem.model, plan), algorithms_of(problem, plan));
}

/// Simulates the plan and the baselines. A search that simulates must not be worse than these: then
/// the best of them is its result.
Comparison compare(const planner::Problem& problem, const planner::SearchRow& search,
                   planner::SearchResult& found) {
  const planner::Machines& machines = *problem.machines;
  const planner::AffordableTime time =
      planner::affordable_iteration(problem.model, found.plan, machines, found.transfer_order);
  Comparison comparison = {time.iteration_s, planner::simulate_baselines(problem, machines)};
  if (!time.remark.empty()) found.remarks.push_back("this plan: " + time.remark);
  for (const planner::Baseline& baseline : comparison.baselines) {
    if (!baseline.remark.empty()) {
      found.remarks.push_back(fmt::format("{}: {}", baseline.name, baseline.remark));
    }
  }
  if (!search.simulates || !comparison.planned_s) return comparison;
  const planner::Baseline* faster =
      planner::faster_baseline(problem, comparison.baselines, *comparison.planned_s);
  if (!faster) return comparison;
  found.remarks.push_back(
      fmt::format("the plan is baseline {}, which the search did not improve on", faster->name));
  found.plan = faster->plan;
  found.transfer_order = sim::TransferOrder::kReady;
  comparison.planned_s = faster->iteration_s;
  return comparison;
}

/// How to replay what a plan file does not say.
void add_replay_remarks(const Options& options, planner::SearchResult& found) {
  if (found.transfer_order == sim::TransferOrder::kNeed) {
    found.remarks.push_back("the plan is for --transfer-order need, which plan files do not say");
  }
  const bool grouped = found.plan.bulk.threshold_bytes > 0 || found.plan.batch.threshold_bytes > 0;
  if (grouped && !options.yaml()) {
    found.remarks.push_back(
        "the plan has bulk groups or batches, which only a plan YAML says: take --output X.yaml");
  }
}

std::string topology_of(const Options& options, const planner::SearchRow& search) {
  std::string name = options.topology;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name != "best") return std::string(casync::find_strategy(options.topology).name);
  if (!search.simulates) {
    throw io::InputError(fmt::format(
        "--topology BEST compares simulated times; search {} simulates nothing: take --search "
        "timeline, or PS or RING",
        search.name));
  }
  return name;
}

/// A bar on terminals only.
void show_progress(double share, double best_s) {
  constexpr int kWidth = 30;
  const int done = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r[{:=<{}}{:<{}}] best {:>10} ", "", done, "", kWidth - done,
             io::format_duration(best_s));
}

planner::Limits limits_of(const Options& options) {
  planner::Limits limits = {.budget_s = options.budget_s.value_or(planner::Limits{}.budget_s),
                            .evaluations = options.evaluations.value_or(-1),
                            .seed = options.seed,
                            .jobs = options.jobs,
                            .interrupted = &interrupted};
  if (isatty(STDERR_FILENO) != 0) limits.progress = show_progress;
  return limits;
}

planner::Problem problem_of(const Options& options, const planner::SearchRow& search,
                            const models::Model& model) {
  planner::Problem problem = {.model = model,
                              .strategy = topology_of(options, search),
                              .nodes = options.nodes > 0 ? options.nodes : kDefaultNodes,
                              .algorithms = split_algorithms(options.algorithms)};
  if (!options.coarsest.empty()) {
    problem.algorithms = planner::not_coarser(problem.algorithms, options.coarsest);
  }
  if (problem.algorithms.empty() && !search.simulates) {
    throw io::InputError(
        fmt::format("search {} needs an algorithm to decide on: allow one, or take --search "
                    "timeline",
                    search.name));
  }
  const bool any = options.grouping == "any" || (options.grouping == "auto" && options.yaml());
  problem.grouping = any ? planner::Grouping::kAny : planner::Grouping::kNone;
  problem.transfer_order = options.transfer_order == "best"   ? planner::OrderChoice::kBest
                           : options.transfer_order == "need" ? planner::OrderChoice::kNeed
                                                              : planner::OrderChoice::kReady;
  problem.limits = limits_of(options);
  return problem;
}

int run(const Options& options) {
  const sim::Network network = sim::parse_network(options.network);
  const planner::SearchRow& search = planner::find_search(options.search_name());
  const models::Model model = models::read_model(options.input);
  planner::Problem problem = problem_of(options, search, model);
  warn_of_unused(options, search);

  costs::Profile profile;
  costs::Cluster cluster;
  std::optional<planner::Machines> machines;
  if (options.simulates() || search.simulates) {
    profile = costs::read_profile(options.profile.empty() ? kPublishedProfile : options.profile);
    cluster = options.cluster.empty()
                  ? costs::cluster_from_profile(profile, problem.nodes)
                  : costs::read_cluster(options.cluster, profile, options.nodes);
    problem.nodes = cluster.nodes;
    profile = on_cluster(std::move(profile), cluster);
    if (!options.profile.empty()) problem.profile = &profile;
    machines.emplace(planner::Machines{profile, cluster, network});
    problem.machines = &*machines;
  }

  std::signal(SIGINT, interrupt);
  const auto start = std::chrono::steady_clock::now();
  planner::SearchResult found = search.search(problem);
  const double search_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::signal(SIGINT, SIG_DFL);
  if (problem.limits.progress) fmt::print(stderr, "\n");
  if (interrupted) found.remarks.push_back("interrupted: this is the best plan so far");

  std::optional<Comparison> comparison;
  if (machines) comparison = compare(problem, search, found);
  add_replay_remarks(options, found);
  for (const std::string& remark : found.remarks) spdlog::info("{}", remark);
  write_plan(options, model, found.plan, profile, comparison);
  if (options.json) {
    print_json(model, found, search_s, *comparison);
    return 0;
  }
  print_report(options, problem, found.plan);
  if (comparison) print_table(options, problem, profile, *comparison);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const io::ToolInfo info = {
      .name = "hipress-plan",
      .purpose = "Decides which gradients to compress, and into how many partitions to cut them.",
      .example = "hipress-plan --input vgg19_gradients.txt --topology PS --nnodes 16"};
  return io::run_tool(
      argc, argv, info, [&](CLI::App& app) { declare_options(app, options); },
      [&] { return run(options); });
}
