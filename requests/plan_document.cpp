#include "costs/assumed_spread.hpp"
#include "planner/bound/bound.hpp"
#include "planner/problem/state_memory.hpp"
#include "plans/plan_builder.hpp"
#include "requests/mix_document.hpp"
#include "requests/planned.hpp"
#include "sim/compute_utilisation.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

using Json = io::Document;

Json json_of(const std::vector<PassReport>& passes) {
  Json list = Json::list();
  for (const PassReport& pass : passes) {
    list.push_back({{"name", pass.name},
                    {"s", pass.seconds},
                    {"iteration_before_s", pass.iteration_before_s},
                    {"iteration_after_s", pass.iteration_after_s},
                    {"changed", pass.changed}});
  }
  return list;
}

Json json_of(const RobustChoice& choice) {
  const auto spread = [](const RobustCandidate& candidate) {
    return Json{{"name", candidate.name},
                {"replicas", candidate.spread.replicas},
                {"mean_s", candidate.spread.mean_s},
                {"p50_s", candidate.spread.p50_s},
                {"p90_s", candidate.spread.p90_s}};
  };
  Json candidates = Json::list();
  for (const RobustCandidate& candidate : choice.candidates)
    candidates.push_back(spread(candidate));
  return {{"nominal", spread(choice.candidates.front())},
          {"robust", spread(choice.candidates[choice.best])},
          {"candidates", candidates}};
}

Json json_of(const models::Model& model, const Explanation& explanation) {
  Json rows = Json::list();
  for (const GradientRow& row : explanation.rows) {
    const models::Gradient& gradient = model.gradients[row.gradient];
    rows.push_back({{"name", gradient.name},
                    {"elements", gradient.elements},
                    {"ready_s", row.ready_s},
                    {"done_s", row.done_s},
                    {"on_critical_path_s", row.on_path_s},
                    {"option", row.option},
                    {"runner_up", row.runner_up},
                    {"runner_up_cost_s", row.runner_up_cost_s},
                    {"why", sentence(row.why())}});
  }
  return {{"residual_bytes_per_node", explanation.memory.residual_bytes},
          {"buffer_bytes_per_node", explanation.memory.buffer_bytes},
          {"runner_up_costs_on_network_port", explanation.estimated},
          {"gradients", rows}};
}

Json json_of(const PlanFigures& figures) {
  return {{"iteration_s", figures.iteration_s},
          {"exposed_communication_s", figures.exposed_s},
          {"bytes_sent_per_node", figures.bytes_per_node},
          {"compressed", figures.compressed},
          {"residual_bytes_per_node", figures.memory.residual_bytes},
          {"buffer_bytes_per_node", figures.memory.buffer_bytes}};
}

Json json_of(const PlanComparison& comparison) {
  Json differences = Json::list();
  for (const Difference& row : comparison.differences) {
    differences.push_back({{"what", row.what},
                           {"first", row.first},
                           {"second", row.second},
                           {"alone_s", row.alone_s}});
  }
  return {{"first", json_of(comparison.first)},
          {"second", json_of(comparison.second)},
          {"worth_on_network_port", comparison.estimated},
          {"differences", differences}};
}

/// Adds "passes", and what else there is of "dense", "robust", "explain" and "compare".
void add_to(Json& report, const Problem& problem, const Analysis& analysis) {
  report["passes"] = json_of(analysis.passes);
  if (const auto& dense = analysis.dense) {
    report["dense"] = {
        {"above", dense->above}, {"algorithm", dense->algorithm}, {"K", dense->partitions}};
  }
  if (analysis.robust) report["robust"] = json_of(*analysis.robust);
  if (analysis.explanation) report["explain"] = json_of(problem.model, *analysis.explanation);
  if (analysis.comparison) report["compare"] = json_of(*analysis.comparison);
}

Json json_of(const BreakEvenPoint& point, double tolerance) {
  Json turns = Json::list(), curve = Json::list();
  for (const Turn& turn : point.turns) {
    turns.push_back({{"value", turn.value},
                     {"compress", turn.compress_below ? "below" : "above"},
                     {"sure_below", turn.low},
                     {"sure_above", turn.high}});
  }
  for (const Elsewhere& at : point.curve) {
    const sim::Saving& saving = *at.saving;
    curve.push_back({{"value", at.value},
                     {"compressed_s", at.compressed_s},
                     {"uncompressed_s", at.uncompressed_s},
                     {"speedup", 1 / (1 - saving.median)},
                     {"speedup_p10", 1 / (1 - saving.p10)},
                     {"speedup_p90", 1 / (1 - saving.p90)},
                     {"probability", saving.probability},
                     {"advice", to_string(at.answer)}});
  }
  return {{"quantity", point.quantity->name},
          {"unit", point.quantity->unit},
          {"given", point.given},
          {"sentences", describe(point, tolerance)},
          {"turns", turns},
          {"curve", curve}};
}

/// What the pilot says of the plan; null: there is none, or it does not know the plan.
Json learning_json(const Planned& planned) {
  const Advice& advice = planned.advice;
  const Problem& problem = *advice.problem;
  const Comparison progress = by_progress(problem, advice.found.plan, advice.comparison);
  if (!progress.steps) return {};
  const StepsRatio& steps = *progress.steps;
  const auto of_ddp = static_cast<double>(problem.learning->steps);
  const Baseline* const today = progress.today(problem);
  return {{"pilot", problem.learning->path},
          {"steps", problem.learning->steps},
          {"steps_ratio", steps.ratio},
          {"steps_ratio_p10", steps.p10},
          {"steps_ratio_p90", steps.p90},
          {"time_to_loss_s", *progress.planned_s * of_ddp},
          {"today_to_loss_s", today != nullptr ? Json(*today->iteration_s * of_ddp) : Json()}};
}

/// A plan as its schedule repeats it.
Json document_of(const Problem& problem, const ScheduledPlan& plan) {
  const costs::Spread spread = costs::spread_of(problem.machines->profile);
  const sim::Interval range = sim::interval(plan.response, spread);
  const sim::ComputeUtilisation busy =
      sim::compute_utilisation(plan.response, plan.compute_s, spread);
  Json algorithms = Json::list();
  for (const std::string& name : plans::used_algorithms(problem.model, plan.plan)) {
    algorithms.push_back(name);
  }
  return {
      {"schedule", plan.plan.schedule.text()},
      {"steps_per_period", plan.steps},
      {"topology", plan.plan.topology},
      {"shards_by",
       kind_of(plan.plan.schedule) == JobKind::kSharding ? Json(plan.plan.shards_by) : Json()},
      {"algorithms", algorithms},
      {"compressed", plan.compressed},
      {"predicted_iteration_s", plan.iteration_s},
      {"predicted_iteration_s_p10", range.p10_s},
      {"predicted_iteration_s_p90", range.p90_s},
      {"utilization", busy.share},
      {"utilization_p10", busy.p10},
      {"utilization_p90", busy.p90},
      {"bytes_per_step", plan.traffic.bytes_per_step},
      {"bytes_per_day", plan.traffic.bytes_per_day},
      {"peak_bits_per_s", plan.traffic.peak_bits_per_s},
      {"lower_bound_s", plan.lower_bound_s > 0 ? Json(plan.lower_bound_s) : Json()},
      {"gap", plan.lower_bound_s > 0 ? Json(plan.iteration_s / plan.lower_bound_s - 1) : Json()},
      {"peak_memory_bytes", plan.memory.total()},
      {"peak_memory", Json{{"parameters", plan.memory.parameters},
                           {"gradients", plan.memory.gradients},
                           {"optimizer", plan.memory.optimizer},
                           {"gathered", plan.memory.gathered},
                           {"reductions", plan.memory.reductions},
                           {"residuals", plan.memory.residuals}}},
      {"gives_up", gives_up(plan)}};
}

/// Adds what is known of the schedules that are compared, and of the plan's own.
void add_schedules(const Planned& planned, Json& report) {
  const ScheduleRows& rows = *planned.schedules;
  const Problem& problem = *planned.advice.problem;
  const ScheduledPlan& chosen = rows.plans[rows.chosen];
  Json schedules = Json::list(), baselines = Json::list(), left_out = Json::list(),
       wraps = Json::list();
  for (const ScheduledPlan& plan : rows.plans) {
    Json row = document_of(problem, plan);
    const std::optional<std::string> why = planned.why_not_chosen(plan);
    row["not_chosen"] = why ? Json(sentence(*why)) : Json();
    schedules.push_back(std::move(row));
  }
  for (const Baseline& one : planned.advice.comparison.baselines) {
    if (!one.iteration_s || one.row().title.empty()) continue;
    Json row = document_of(problem, figures_of(problem, one.plan, one.transfer_order));
    row["name"] = one.name;
    baselines.push_back(std::move(row));
  }
  for (const LeftOutSchedule& one : rows.left_out) {
    left_out.push_back({{"schedule", one.schedule}, {"reason", sentence(one.reason)}});
  }
  for (const WrapRow& row : rows.wraps) {
    Json one = row.plan ? document_of(problem, *row.plan) : Json();
    one["wrap"] = row.rule;
    one["not_chosen"] = row.not_chosen.empty() ? Json() : Json(sentence(row.not_chosen));
    wraps.push_back(std::move(one));
  }
  report.update({{"schedules", schedules},
                 {"chosen", chosen.plan.schedule.text()},
                 {"baseline_plans", baselines},
                 {"left_out", left_out}});
  if (rows.wraps.empty()) return;
  report["wraps"] = wraps;
  report["wrap"] = planned.request.request.wrap;
}

}  // namespace

std::string gives_up(const ScheduledPlan& plan) {
  const std::string text = plan.plan.schedule.gives_up();
  return text.empty() ? text : plan.plan.schedule.text() + ": " + text;
}

std::optional<std::string> Planned::why_not_chosen(const ScheduledPlan& plan) const {
  const ScheduledPlan& chosen = schedules->plans[schedules->chosen];
  if (&plan == &chosen) return std::nullopt;
  return reason_against(plan, chosen, room_of(prepared.problem));
}

io::Document document(const Planned& planned) {
  const Advice& advice = planned.advice;
  const std::optional<models::Traced>& traced = planned.traced;
  const Problem& problem = *advice.problem;
  const SearchResult& found = advice.found;
  const Comparison& comparison = advice.comparison;
  const Verdict& verdict = advice.verdict;
  const auto add_time = [&](Json& to, const std::string& name, const std::optional<double>& time_s,
                            const std::optional<sim::Response>& response) {
    std::optional<sim::Interval> range;
    if (response) range = sim::interval(*response, comparison.spread);
    to[name] = time_s;
    to[name + "_p10"] = range ? Json(range->p10_s) : Json();
    to[name + "_p90"] = range ? Json(range->p90_s) : Json();
  };
  Json baselines, baselines_p10, baselines_p90, faster_than;
  for (const Baseline& baseline : comparison.baselines) {
    const std::string name(baseline.name);
    Json times;
    add_time(times, name, baseline.iteration_s, baseline.response);
    baselines[name] = times[name];
    baselines_p10[name] = times[name + "_p10"];
    baselines_p90[name] = times[name + "_p90"];
    faster_than[name] =
        comparison.planned && baseline.response
            ? Json(sim::saving(*comparison.planned, *baseline.response, comparison.spread)
                       .probability)
            : Json();
  }
  Json report = {{"model", problem.model.name},
                 {"nodes", planned.prepared.given_nodes},
                 {"schedule", found.plan.schedule.text()},
                 {"gradients", found.plan.decisions.size()},
                 {"compressed", plans::count_compressed(problem.model, found.plan)},
                 {"topology", found.plan.topology},
                 {"raw_topology", raw_topology_of(found.plan)},
                 {"advice", to_string(verdict.answer)},
                 {"advice_probability", verdict.probability},
                 {"verdict", sentence(verdict.sentence)}};
  add_time(report, "predicted_iteration_s", comparison.planned_s, comparison.planned);
  const auto& raw = comparison.uncompressed;
  add_time(report, "best_uncompressed_s", raw ? std::optional(raw->plan.iteration_s) : std::nullopt,
           raw ? raw->response : std::nullopt);
  report["learning"] = learning_json(planned);
  if (traced) {
    report["traced"] = {{"step_s", traced->step_s},
                        {"exposed_communication_s", traced->exposed_communication_s},
                        {"most_gain", traced->exposed_communication_s / traced->step_s}};
  }
  report.update(Json{{"lower_bound_s", comparison.lower_bound_s},
                     {"gap", comparison.gap()},
                     {"proved_optimal", comparison.proved_optimal},
                     {"evaluations", found.evaluations},
                     {"search_s", advice.search_s},
                     {"baselines", baselines},
                     {"baselines_p10", baselines_p10},
                     {"baselines_p90", baselines_p90},
                     {"faster_than", faster_than}});
  const StateMemory memory = memory_of(problem, found.plan);
  report["peak_memory_bytes"] = memory.total();
  if (planned.schedules) {
    const ScheduleRows& rows = *planned.schedules;
    report.update(document_of(problem, rows.plans[rows.chosen]));
    add_schedules(planned, report);
  }
  add_mix(problem.machines->cluster, problem.model, report);
  add_to(report, problem, advice.analysis);
  if (planned.break_even) report["break_even"] = json_of(*planned.break_even, problem.tolerance);
  if (planned.request.advise) report["in_words"] = planned.in_words;
  return report;
}

}  // namespace hipress::requests
