// hipress-plan: decides per gradient whether to compress it, and into how many partitions. Without
// a profile it does what SeCoPa.py did, from the same options to the same file.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
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
  std::string search = "secopa";
  std::string network = "fair";
  std::optional<double> budget_s;
  std::optional<std::int64_t> evaluations;
  std::string output = "SeCoPaPlan.txt";
  bool json = false;
  bool baselines = false;

  bool yaml() const { return output.ends_with(".yaml") || output.ends_with(".yml"); }
  /// The drop-in for SeCoPa.py answers at once: it simulates nothing.
  bool simulates() const {
    return json || baselines || yaml() || !profile.empty() || !cluster.empty();
  }
};

/// Simulated iteration times of the plan and of what it is compared with.
struct Comparison {
  double planned_s = 0;
  std::vector<planner::BaselineTime> baselines;
};

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      ->capture_default_str();
  app.add_option("--topology", options.topology, "PS or RING")->capture_default_str();
  app.add_option("--nnodes", options.nodes, "Number of nodes (default: the cluster's, else 16)")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--profile", options.profile,
                 "Costs: a profile.yaml or a shipped profile (default: published with SeCoPa)");
  app.add_option("--cluster", options.cluster, "Cluster YAML; what it leaves out is the profile's");
  app.add_option("--algorithm", options.algorithms, "Algorithms that the plan may use, with commas")
      ->capture_default_str();
  app.add_option("--search", options.search, "One of: " + planner::search_names())
      ->capture_default_str();
  app.add_option("--network", options.network, "port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--budget", options.budget_s,
                 "Seconds for a search that iterates; secopa does not")
      ->check(CLI::PositiveNumber);
  app.add_option("--evaluations", options.evaluations,
                 "Simulations for a search that iterates, instead of --budget")
      ->check(CLI::PositiveNumber);
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

void warn_of_unused(const Options& options) {
  if (options.budget_s)
    spdlog::warn("--budget has no effect: search {} does not iterate", options.search);
  if (options.evaluations) {
    spdlog::warn("--evaluations has no effect: search {} does not iterate", options.search);
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
  if (!options.yaml()) return plans::write_plan_text(options.output, model, plan);
  plans::write_plan_yaml(options.output, model, plan,
                         {.predicted_iteration_s = comparison->planned_s,
                          .search = options.search,
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.network});
}

void print_json(const models::Model& model, const planner::SearchResult& found, double search_s,
                const Comparison& comparison) {
  Json baselines;
  for (const planner::BaselineTime& baseline : comparison.baselines) {
    baselines[std::string(baseline.name)] = baseline.iteration_s;
  }
  baselines["greedy"] = nullptr;  // no search for it
  const Json report = {{"gradients", found.plan.decisions.size()},
                       {"compressed", count_compressed(model, found.plan)},
                       {"predicted_iteration_s", comparison.planned_s},
                       {"lower_bound_s", nullptr},  // secopa gives no bound
                       {"gap", nullptr},
                       {"evaluations", found.evaluations},
                       {"search_s", search_s},
                       {"baselines", baselines}};
  std::cout << report.dump(2) << '\n';
}

void print_table(const Options& options, const costs::Profile& profile,
                 const Comparison& comparison) {
  fmt::print(std::cout, "\nsimulated iteration, profile {}, network {}:\n", profile.name,
             options.network);
  const auto line = [](std::string_view name, double seconds) {
    fmt::print(std::cout, "  {:<18}{:>10}\n", name, io::format_duration(seconds));
  };
  for (const planner::BaselineTime& baseline : comparison.baselines) {
    line(baseline.name, baseline.iteration_s);
  }
  line("this plan", comparison.planned_s);
  const auto best = std::min_element(
      comparison.baselines.begin(), comparison.baselines.end(),
      [](const auto& left, const auto& right) { return left.iteration_s < right.iteration_s; });
  if (best->iteration_s < comparison.planned_s) {
    fmt::print(std::cout, "  '{}' is faster than this plan\n", best->name);
  }
}

void print_report(const Options& options, const planner::Problem& problem,
                  const casync::Plan& plan) {
  fmt::print(std::cout, "{}: {} gradients, {}, N = {}; {} compressed with {}\n", options.output,
             plan.decisions.size(), plan.strategy, plan.nodes,
             count_compressed(problem.model, plan), planner::first_lossy(problem.algorithms));
}

Comparison compare(const planner::Problem& problem, const casync::Plan& plan,
                   const planner::Machines& machines) {
  return {.planned_s = planner::simulated_iteration_s(problem.model, plan, machines),
          .baselines = planner::simulate_baselines(problem, machines)};
}

int run(const Options& options) {
  const sim::Network network = sim::parse_network(options.network);
  const planner::SearchRow& search = planner::find_search(options.search);
  const models::Model model = models::read_model(options.input);
  planner::Problem problem = {.model = model,
                              .strategy = std::string(casync::find_strategy(options.topology).name),
                              .nodes = options.nodes > 0 ? options.nodes : kDefaultNodes,
                              .algorithms = split_algorithms(options.algorithms)};
  warn_of_unused(options);

  costs::Profile profile;
  costs::Cluster cluster;
  if (options.simulates()) {
    profile = costs::read_profile(options.profile.empty() ? kPublishedProfile : options.profile);
    cluster = options.cluster.empty()
                  ? costs::cluster_from_profile(profile, problem.nodes)
                  : costs::read_cluster(options.cluster, profile, options.nodes);
    problem.nodes = cluster.nodes;
    profile = on_cluster(std::move(profile), cluster);
    if (!options.profile.empty()) problem.profile = &profile;
  }

  const auto start = std::chrono::steady_clock::now();
  const planner::SearchResult found = search.search(problem);
  const double search_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const std::string& remark : found.remarks) spdlog::info("{}", remark);

  std::optional<Comparison> comparison;
  if (options.simulates()) {
    comparison =
        compare(problem, found.plan, {.profile = profile, .cluster = cluster, .network = network});
  }
  write_plan(options, model, found.plan, profile, comparison);
  if (options.json) {
    print_json(model, found, search_s, *comparison);
    return 0;
  }
  print_report(options, problem, found.plan);
  if (comparison) print_table(options, profile, *comparison);
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
