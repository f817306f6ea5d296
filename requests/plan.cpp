#include "requests/plan.hpp"

#include <fmt/format.h>

#include "casync/topology.hpp"
#include "costs/collectives.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "planner/advice/in_words.hpp"
#include "planner/search/shards.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "requests/bandwidths.hpp"
#include "requests/broadcast.hpp"
#include "requests/candidates.hpp"
#include "requests/estimates.hpp"
#include "requests/hosts.hpp"
#include "requests/report.hpp"
#include "sim/folding.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

/// Diagnostic for a text plan that compresses with a single algorithm. The text does not name it,
/// so the user must name it when the plan is replayed, unless it is the default. Empty: not needed.
std::string diagnose_algorithm(const models::Model& model, const casync::Plan& plan) {
  const std::vector<std::string> used = plans::used_algorithms(model, plan);
  if (used.size() != 1 || used.front() == plans::PlanContext{.model = model}.algorithm) return {};
  if (is_additive(used.front())) return {};  // the text format marks additive algorithms
  return fmt::format(
      "the plan compresses with {}, which a text plan cannot name: take `output` X.yaml, or replay "
      "with `algorithm` {}",
      used.front(), io::quote(used.front()));
}

/// Writes the plan in the format that the output's name implies. YAML includes the dense fallback.
void write_plan(const PlanRequest& options, const models::Model& model, const SearchResult& found,
                std::string_view search, const costs::Profile& profile,
                const Comparison& comparison, const std::optional<plans::DenseFallback>& dense) {
  if (!options.yaml()) return plans::write_plan_text(options.output, model, found.plan);
  plans::write_plan_yaml(options.output, model, found.plan,
                         {.predicted_iteration_s = comparison.planned_s,
                          .search = std::string(search),
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.request.network,
                          .lower_bound_s = comparison.lower_bound_s,
                          .transfer_order = found.transfer_order,
                          .dense = dense,
                          .wrap = options.request.wrap});
}

/// Adds diagnostics about what the plan's file cannot hold or hipress-exec cannot run.
void add_replay_diagnostics(const PlanRequest& options, const models::Model& model,
                            const costs::Profile& profile, SearchResult& found) {
  if (kind_of(found.plan.schedule) == JobKind::kSharding) return;
  const std::string raw = raw_topology_of(found.plan);
  if (sends_raw_alone(raw)) {
    const std::string estimate = costs::AllReduceCosts(profile).diagnostic(found.plan.nodes);
    if (!estimate.empty()) found.diagnostics.push_back(estimate);
  }
  if (!options.yaml()) {
    const std::string algorithm = diagnose_algorithm(model, found.plan);
    if (!algorithm.empty()) found.diagnostics.push_back(algorithm);
  }
  if (!found.plan.raw_topology.empty() && !options.yaml()) {
    found.diagnostics.push_back(fmt::format(
        "raw gradients travel by {}, which only a plan YAML can hold: take `output` X.yaml{}", raw,
        sends_raw_alone(raw)
            ? fmt::format(", or replay with `topology` {} `raw_allreduce`", found.plan.topology)
            : ""));
  }
  if (found.transfer_order == sim::TransferOrder::kNeed) {
    found.diagnostics.emplace_back(
        options.yaml() ? "the plan is for transfer order need, which hipress-exec cannot run"
                       : "the plan is for `transfer_order` need, which only a plan YAML can hold: "
                         "take `output` X.yaml, or replay with hipress-sim `transfer_order` need");
  }
  const bool grouped = found.plan.bulk.threshold_bytes > 0 || found.plan.batch.threshold_bytes > 0;
  if (grouped && !options.yaml()) {
    found.diagnostics.emplace_back(
        "the plan has bulk groups or batches, which only a plan YAML can hold: take `output` "
        "X.yaml");
  }
}

/// Copies the hooks. The copy also records warnings and notes in `said`.
Hooks noting(const Hooks& hooks, const std::shared_ptr<std::vector<std::string>>& said) {
  Hooks made = hooks;
  made.warn = [hooks, said](const std::string& text) {
    said->push_back(text);
    warn(hooks, text);
  };
  made.inform = [hooks, said](const std::string& text) {
    said->push_back(text);
    inform(hooks, text);
  };
  return made;
}

/// Quantity whose break-even is computed; empty: none. If a report is requested without one, it is
/// the bandwidth, provided that this request searches for its plan and the plan's time was
/// simulated.
std::string break_even_quantity(const Planned& planned) {
  const PlanRequest& request = planned.request;
  if (!request.break_even.empty() || request.report.empty()) return request.break_even;
  const bool can_be_found =
      planned.prepared->searches() && planned.advice.comparison.planned_s.has_value();
  return can_be_found ? "bandwidth" : "";
}

/// Answers questions about other machines: the break-even, and the advice.
void look_elsewhere(Planned& planned, const Hooks& hooks) {
  constexpr std::int64_t kEvaluations = 100, kFew = 20;  // default evaluations of a search
  const PlanRequest& request = planned.request;
  const std::string quantity = break_even_quantity(planned);
  if (quantity.empty() && !request.advise) return;
  WhatIf what_if(*planned.prepared, request.request.evaluations.value_or(kEvaluations),
                 &planned.advice);
  if (!quantity.empty()) {
    planned.break_even = break_even_point(what_if, find_quantity(quantity));
    if (!planned.break_even->diagnostic.empty()) inform(hooks, planned.break_even->diagnostic);
  }
  if (!request.advise) return;
  WhatIf known(*planned.prepared, request.request.evaluations.value_or(kFew), &planned.advice,
               Compared::kKnown);
  const Machines* const machines = planned.advice.problem->machines;
  if (machines != nullptr && machines->budget) machines->budget->restart();
  planned.in_words = in_words(known, planned.advice);
}

/// Adds diagnostics about algorithms that sharded plans cannot use, and about estimated costs of
/// collectives.
void add_shard_diagnostics(const Planned& planned, SearchResult& found) {
  const Problem& problem = *planned.advice.problem;
  if (kind_of(found.plan.schedule) != JobKind::kSharding) return;
  for (const std::string& name : problem.algorithms) {
    if (!planned.request.is_given("algorithm") || may_reduce(name)) continue;
    found.diagnostics.push_back(
        fmt::format("{} is left out: it cannot encode shards independently of each other", name));
  }
  sim::Scenario scenario =
      affordable_scenario(problem.model, found.plan, *problem.machines).scenario;
  scenario.stop = {};
  const casync::TaskGraph graph = sim::expand(scenario, sim::Fold::kExactly).graph;
  for (std::string& estimate : estimates_of(graph, scenario.profile)) {
    found.diagnostics.push_back(std::move(estimate));
  }
}

/// Writes the plan. Informs the user instead if its format cannot hold the plan.
void write(const Planned& planned, const Hooks& hooks) {
  const PlanRequest& request = planned.request;
  const SearchResult& found = planned.advice.found;
  if (!request.yaml() && found.plan.schedule != casync::Schedule()) {
    return inform(hooks, fmt::format("only a plan YAML can hold schedule {}: take `output` X.yaml",
                                     found.plan.schedule.text()));
  }
  const PreparedRequest& prepared = *planned.prepared;
  const std::string search = prepared.search.has_options ? prepared.request.search_name()
                                                         : std::string(prepared.search.name);
  write_plan(request, prepared.model, found, search, prepared.profile, planned.advice.comparison,
             planned.advice.analysis.dense);
}

/// Updates the chosen schedule's row after passes and analyses.
void refresh_chosen(Planned& planned) {
  if (!planned.schedules || !planned.advice.comparison.planned_s) return;
  ScheduledPlan& row = planned.schedules->plans[planned.schedules->chosen];
  const double lower_bound_s = row.lower_bound_s;
  const SearchResult& found = planned.advice.found;
  row = figures_of(*planned.advice.problem, found.plan, found.transfer_order);
  row.lower_bound_s = lower_bound_s;
}

/// Rejects contradictory fields before files are read.
void check_before(const PlanRequest& request) {
  refuse_unfit(request);
  check(request);
  if (!request.break_even.empty()) find_quantity(request.break_even);
  sim::parse_network(request.request.network);
}

}  // namespace

std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& given) {
  check_before(request);
  const auto said = std::make_shared<std::vector<std::string>>();
  const Hooks hooks = noting(given, said);
  const bool writes = request.request.analysis.plan.empty() && !request.output.empty();
  std::unique_ptr<Planned> planned;
  try {
    planned = best_candidate(request, hooks);
    complete(*planned->prepared, planned->advice);
    refresh_chosen(*planned);
  } catch (const sim::Stopped&) {
    throw Interrupted();
  }
  const Advice& advice = planned->advice;
  for (const std::string& warning : advice.analysis.warnings) warn(hooks, warning);
  SearchResult& found = planned->advice.found;
  add_shard_diagnostics(*planned, found);
  if (writes) {
    add_replay_diagnostics(request, planned->prepared->model, planned->prepared->profile, found);
    write(*planned, hooks);
  }
  look_elsewhere(*planned, hooks);
  for (const std::string& diagnostic : found.diagnostics) inform(hooks, diagnostic);
  planned->traced = models::read_traced(request.request.input);
  if (request.makes_page()) planned->page = report_page(*planned, *said);
  if (!request.report.empty()) {
    io::write_file(request.report, [&](std::ostream& out) { out << planned->page; });
  }
  return planned;
}

io::Document answer(const PlanRequest& request, const Hooks& hooks) {
  if (request.hosts.size() > 1) return document(compare_hosts(request, hooks));
  if (request.job == "broadcast") return document(*plan_broadcast(request, hooks));
  if (request.required_bandwidth) return document(find_bandwidths(request, hooks));
  return document(*plan(request, hooks));
}

}  // namespace hipress::requests
