#include "requests/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "casync/strategy.hpp"
#include "costs/assumed_spread.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "models/time_options.hpp"
#include "planner/rules/alone.hpp"
#include "planner/schedules/scenario.hpp"
#include "planner/schedules/sharded.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "requests/asked_schedules.hpp"
#include "requests/estimates.hpp"
#include "requests/mix_document.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/parallel.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

using Json = io::Document;

constexpr std::string_view kUtilizations = "50%,80%,90%,95%,99%";
constexpr std::string_view kNothing = "none";

constexpr const char* kUnsharded =
    "`shards_by` is of sharded schedules, such as `schedule` fsdp: give one, or leave it out";

/// Plan::shards_by.
std::string carrier_of(const PlanRequest& request) {
  return request.shards_by.empty() ? std::string(casync::kLibrary)
                                   : casync::carrier_of_shards(request.shards_by);
}

double utilization_in(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (whole && text.ends_with('%') && percent > 0 && percent < 100) return percent / 100;
  throw io::InputError(
      fmt::format("`utilization` must be percentages above 0% and below 100%, which no bandwidth "
                  "reaches, such "
                  "as {}; got {}",
                  kUtilizations, io::quote(std::string(text))));
}

std::vector<double> utilizations_of(const PlanRequest& request) {
  std::string_view list = request.utilization.empty() ? kUtilizations : request.utilization;
  std::vector<double> found;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    found.push_back(utilization_in(one));
    if (comma == std::string_view::npos) return found;
    list.remove_prefix(comma + 1);
  }
}

/// Everything compressed with that one, or nothing, each gradient in one partition per node.
casync::Plan plan_of(const Problem& problem, const std::string& strategy,
                     const std::string& algorithm, const casync::Schedule& schedule,
                     const std::string& shards_by) {
  Problem alone = problem;
  alone.strategy = strategy;
  alone.algorithms.clear();
  if (algorithm != kNothing) alone.algorithms = {algorithm};
  casync::Plan plan = algorithm == kNothing ? rules::none(alone) : rules::all(alone);
  for (casync::Decision& decision : plan.decisions) {
    decision.partitions = static_cast<std::int32_t>(problem.nodes);
  }
  plan.schedule = schedule;
  plan.shards_by = shards_by;
  plan.gpus_per_node = problem.machines->cluster.gpus_per_node;
  if (algorithm == kNothing) send_as_stored(problem.model, plan);
  if (schedule.is_sharded() && algorithm != kNothing && may_gather(problem, algorithm)) {
    for (const casync::Decision& decision : plan.decisions) {
      plan.gathers.push_back(decision.algorithm);
    }
  }
  return plan;
}

/// Row by row the least of the strategies'.
void take_less(BandwidthTable table, BandwidthTable& best) {
  if (best.rows.empty()) {
    best = std::move(table);
    return;
  }
  for (std::size_t i = 0; i < best.rows.size(); ++i) {
    const std::optional<double>& found = table.rows[i].bits_per_s;
    if (found && (!best.rows[i].bits_per_s || *found < *best.rows[i].bits_per_s)) {
      best.rows[i] = table.rows[i];
    }
  }
}

BandwidthTable table_of(const Problem& problem, const std::string& algorithm,
                        const casync::Schedule& schedule, const std::string& shards_by,
                        const std::vector<double>& wanted) {
  const bool sharded = schedule.is_sharded();
  if (sharded && problem.machines->cluster.gpus_per_node > 1) {
    return table_of(GpuProblem(problem).problem(), algorithm, schedule, shards_by, wanted);
  }
  BandwidthTable best;
  std::string refusal = "no topology carries it";
  // Shards travel by `shards_by`, whatever the topology.
  const std::vector<std::string> strategies =
      sharded ? std::vector<std::string>{"ring"} : strategies_of(problem);
  for (const std::string& strategy : strategies) {
    const sim::Scenario scenario =
        scenario_of(problem, plan_of(problem, strategy, algorithm, schedule, shards_by));
    try {
      take_less({schedule.text(), algorithm, strategy, required_bandwidths(scenario, wanted)},
                best);
    } catch (const std::invalid_argument& error) {
      refusal = error.what();
    }
  }
  if (best.rows.empty()) throw io::InputError(refusal);
  if (strategies.size() > 1) best.topology = problem.strategy;
  if (sharded) best.topology = shards_by == casync::kLibrary ? "allreduce" : shards_by;
  return best;
}

void find_bandwidths(ScheduleAnswer& answer, const std::vector<AskedSchedule>& schedules,
                     const Hooks& hooks) {
  const Problem& problem = answer.prepared.problem;
  if (problem.nodes < 2) {
    throw io::InputError(
        "`required_bandwidth` needs at least two nodes: one has nobody to send to");
  }
  const std::vector<double> wanted = utilizations_of(answer.request);
  std::vector<std::string> algorithms = {std::string(kNothing)};
  if (answer.request.algorithms_given && !problem.algorithms.empty()) {
    algorithms = problem.algorithms;
  }
  look_for_interrupt(hooks);
  answer.bandwidths.resize(schedules.size() * algorithms.size());
  sim::run_parallel(answer.bandwidths.size(), problem.limits.jobs,
                    [&](std::size_t place, unsigned) {
                      const std::size_t i = place / algorithms.size();
                      BandwidthTable& table = answer.bandwidths[place];
                      table = table_of(problem, algorithms[place % algorithms.size()],
                                       schedules[i].schedule, carrier_of(answer.request), wanted);
                      table.schedule = schedules[i].text;
                    });
}

/// What is said of a plan beside the answer's baselines.
Verdict verdict_on(const ScheduledPlan& plan, const ScheduleAnswer& answer) {
  const ShardedComparison comparison = {
      .plan = plan,
      .baselines = answer.baselines,
      .memory_bytes = memory_limit(answer.request).value_or(INT64_MAX),
      .spread = costs::spread_of(answer.prepared.profile)};
  Verdict verdict = judge_shards(answer.prepared.problem, comparison);
  const models::Model& model = answer.prepared.model;
  Comparison times = {.planned_s = comparison.plan.iteration_s, .baselines = {}};
  if (const ShardedBaseline* const rival = comparison.fastest_uncompressed()) {
    times.uncompressed = {.name = std::string(rival->row->name),
                          .plan = {rival->found->plan, {}, rival->found->iteration_s}};
  }
  weaken(models::missing_times(model), verdict, times);
  if (answer.prepared.request.times.compute_time.empty()) {
    verdict.sentence.insert(0, other_hardware(model.source, answer.prepared.profile.hardware));
  }
  return verdict;
}

/// Lays baselines beside the chosen plan, where parameters may be in shards.
void compare(ScheduleAnswer& answer, const Hooks& hooks) {
  const bool sharded = std::ranges::any_of(
      answer.plans, [](const ScheduledPlan& one) { return one.plan.schedule.is_sharded(); });
  if (!sharded) return;
  look_for_interrupt(hooks);
  answer.baselines = simulate_sharded_baselines(answer.prepared.problem, answer.request.optimizer,
                                                carrier_of(answer.request));
  answer.verdict = verdict_on(answer.plans[answer.chosen], answer);
}

/// Half precision is what a sharded job computes in, and no compression.
bool compresses(const casync::Plan& plan, const models::Model& model) {
  return !std::ranges::all_of(plans::used_algorithms(model, plan), plans::is_cast);
}

/// Of each schedule that was asked for the fastest plan without compression: found without the
/// algorithms that compress, or a baseline.
std::vector<ScheduledPlan> uncompressed(const ScheduleAnswer& answer,
                                        const std::vector<casync::Schedule>& schedules) {
  Problem problem = answer.prepared.problem;
  std::erase_if(problem.algorithms, [](const std::string& one) { return !plans::is_cast(one); });
  std::vector<ScheduledPlan> found =
      plan_schedules(problem, schedules, answer.request.optimizer, carrier_of(answer.request));
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].lower_bound_s = answer.plans[i].lower_bound_s;  // of all plans of the schedule
    for (const ShardedBaseline& one : answer.baselines) {
      const bool may_be =
          one.found && !one.row->compresses && one.found->plan.schedule == found[i].plan.schedule;
      if (!may_be || one.found->iteration_s >= found[i].iteration_s) continue;
      const double bound_s = found[i].lower_bound_s;
      found[i] = *one.found;
      found[i].lower_bound_s = bound_s;
    }
  }
  return found;
}

/// Where compression is advised against, and saves no more than the tolerance over what the asked
/// schedules take without it, the answer is that plan.
void take_advised(ScheduleAnswer& answer, const std::vector<casync::Schedule>& schedules,
                  const Hooks& hooks) {
  const Problem& problem = answer.prepared.problem;
  const ScheduledPlan& fastest = answer.plans[answer.chosen];
  if (answer.request.request.writes_fastest()) return;
  const auto advises_against = [](const Verdict& verdict) {
    return verdict.answer == Answer::kDoNotCompress || verdict.answer == Answer::kTooUncertain;
  };
  if (answer.baselines.empty() || !advises_against(answer.verdict)) return;
  if (!compresses(fastest.plan, problem.model)) return;
  look_for_interrupt(hooks);
  const std::int64_t memory_bytes = memory_limit(answer.request).value_or(INT64_MAX);
  const std::vector<ScheduledPlan> plain = uncompressed(answer, schedules);
  const std::size_t chosen = choose_schedule(plain, problem.tolerance, memory_bytes);
  const double saved = 1 - fastest.iteration_s / plain[chosen].iteration_s;
  const Verdict verdict = verdict_on(plain[chosen], answer);
  if (saved > problem.tolerance || !advises_against(verdict)) return;
  inform(hooks,
         fmt::format("the plan compresses nothing{}, as advised: the fastest that does would "
                     "save {:.1f} % (`write` fastest writes it)",
                     plain[chosen].compressed > 0 ? " beyond half precision" : "",
                     100 * std::max(0.0, saved)));
  answer.chosen = chosen;
  answer.plans[chosen] = plain[chosen];
  answer.verdict = verdict;
}

void write(const ScheduleAnswer& answer, const Hooks& hooks) {
  const PlanRequest& request = answer.request;
  const ScheduledPlan& found = answer.plans[answer.chosen];
  if (request.output.empty()) return;
  if (!request.yaml() && found.plan.schedule != casync::Schedule()) {
    return inform(hooks, fmt::format("schedule {} is only in a plan YAML: take `output` X.yaml",
                                     found.plan.schedule.text()));
  }
  if (!request.yaml()) {
    return plans::write_plan_text(request.output, answer.prepared.model, found.plan);
  }
  const costs::Profile& profile = answer.prepared.profile;
  plans::write_plan_yaml(request.output, answer.prepared.model, found.plan,
                         {.predicted_iteration_s = found.iteration_s,
                          .search = "schedules",
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = request.request.network,
                          .wrap = request.request.wrap});
}

/// Finds what is asked for.
void find(ScheduleAnswer& answer, const Hooks& hooks) {
  const PlanRequest& request = answer.request;
  const PreparedRequest& prepared = answer.prepared;
  AskedSchedules asked = asked_schedules(request, prepared.problem);
  const bool sharded = std::ranges::any_of(
      asked.schedules, [](const AskedSchedule& one) { return one.schedule.is_sharded(); });
  if (!request.shards_by.empty() && !sharded) throw io::InputError(kUnsharded);
  if (request.required_bandwidth) return find_bandwidths(answer, asked.schedules, hooks);
  if (!request.output.empty()) {
    io::require_writable(request.output);
    io::refuse_input(request.output);
    if (!request.yaml()) plans::require_text_names(prepared.model);
  }
  look_for_interrupt(hooks);
  std::vector<casync::Schedule> schedules;
  for (const AskedSchedule& one : asked.schedules) schedules.push_back(one.schedule);
  answer.left_out = std::move(asked.left_out);
  answer.plans =
      plan_schedules(prepared.problem, schedules, request.optimizer, carrier_of(request));
  answer.chosen = choose_schedule(answer.plans, prepared.problem.tolerance,
                                  memory_limit(request).value_or(INT64_MAX));
  compare(answer, hooks);
  take_advised(answer, schedules, hooks);
}

using Answers = std::vector<std::unique_ptr<ScheduleAnswer>>;

/// One for each rule of layers, of those that are given twice the first, or the only one.
Answers prepare(const PlanRequest& request, const Hooks& hooks) {
  PlanRequest each = request;
  Hooks quiet = hooks;
  quiet.warn = {};  // all have the same warnings
  Answers answers;
  if (request.wraps.empty()) answers.push_back(std::make_unique<ScheduleAnswer>(request, hooks));
  for (const std::string& rule : request.wraps) {
    const auto is_same = [&](const auto& other) { return other->request.request.wrap == rule; };
    if (std::ranges::any_of(answers, is_same)) continue;
    each.request.wrap = rule;
    answers.push_back(std::make_unique<ScheduleAnswer>(each, answers.empty() ? hooks : quiet));
  }
  return answers;
}

/// Finds plans with all rules; the answer of the best, with what became of the others.
std::unique_ptr<ScheduleAnswer> best_of_rules(Answers answers, const Hooks& hooks) {
  std::vector<WrapRow> rows;
  std::vector<ScheduledPlan> plans;
  std::vector<std::size_t> of_plan;  // places among the answers
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ScheduleAnswer& answer = *answers[i];
    rows.push_back({.rule = answer.request.request.wrap, .plan = {}, .not_chosen = {}});
    try {
      find(answer, hooks);
      plans.push_back(answer.plans[answer.chosen]);
      of_plan.push_back(i);
      rows.back().plan = plans.back();
    } catch (const io::InputError& error) {
      if (i + 1 == answers.size() && plans.empty()) throw;
      rows.back().not_chosen = error.what();
    }
  }
  const Problem& problem = answers.front()->prepared.problem;
  const std::size_t chosen = choose_schedule(plans, problem.tolerance);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (k == chosen) continue;
    rows[of_plan[k]].not_chosen = reason_against(plans[k], plans[chosen], INT64_MAX);
  }
  answers[of_plan[chosen]]->wraps = std::move(rows);
  return std::move(answers[of_plan[chosen]]);
}

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
      {"topology", plan.plan.strategy},
      {"shards_by", plan.plan.schedule.is_sharded() ? Json(plan.plan.shards_by) : Json()},
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
                           {"reductions", plan.memory.reductions}}},
      {"gives_up", gives_up(plan)}};
}

/// Adds what becomes of each rule of layers.
void add_wraps(const ScheduleAnswer& answer, Json& report) {
  Json wraps = Json::list();
  for (const WrapRow& row : answer.wraps) {
    Json one = row.plan ? document_of(answer.prepared.problem, *row.plan) : Json();
    one["wrap"] = row.rule;
    one["not_chosen"] = row.not_chosen.empty() ? Json() : Json(sentence(row.not_chosen));
    wraps.push_back(std::move(one));
  }
  report["wraps"] = wraps;
  report["wrap"] = answer.request.request.wrap;
}

/// Adds the verdict, and baselines by their names as other plans have them.
void add_baselines(const ScheduleAnswer& answer, Json& report) {
  const Problem& problem = answer.prepared.problem;
  const costs::Spread spread = costs::spread_of(answer.prepared.profile);
  Json times, p10, p90, faster_than, rows = Json::list();
  for (const ShardedBaseline& one : answer.baselines) {
    const std::string name(one.row->name);
    times[name] = p10[name] = p90[name] = faster_than[name] = Json();
    if (!one.found) continue;
    const sim::Interval range = sim::interval(one.found->response, spread);
    times[name] = one.found->iteration_s;
    p10[name] = range.p10_s;
    p90[name] = range.p90_s;
    faster_than[name] =
        sim::saving(answer.plans[answer.chosen].response, one.found->response, spread).probability;
    Json row = document_of(problem, *one.found);
    row["name"] = name;
    rows.push_back(std::move(row));
  }
  report.update(Json{{"advice", to_string(answer.verdict.answer)},
                     {"advice_probability", answer.verdict.probability},
                     {"verdict", sentence(answer.verdict.sentence)},
                     {"baselines", times},
                     {"baselines_p10", p10},
                     {"baselines_p90", p90},
                     {"faster_than", faster_than},
                     {"baseline_plans", rows}});
}

}  // namespace

ScheduleAnswer::ScheduleAnswer(const PlanRequest& asked, const Hooks& hooks)
    : request(asked),
      prepared(asked.request, PlanForm::kYaml,
               {.warn = [hooks](const std::string& text) { warn(hooks, text); },
                .interrupted = hooks.interrupted}) {}

std::string gives_up(const ScheduledPlan& plan) {
  const std::string text = plan.plan.schedule.gives_up();
  return text.empty() ? text : plan.plan.schedule.text() + ": " + text;
}

std::optional<std::string> why_not_chosen(const ScheduleAnswer& answer, const ScheduledPlan& plan) {
  const ScheduledPlan& chosen = answer.plans[answer.chosen];
  if (&plan == &chosen) return std::nullopt;
  return reason_against(plan, chosen, memory_limit(answer.request).value_or(INT64_MAX));
}

void refuse_unused(const PlanRequest& request) {
  if (!request.wraps.empty() && !request.is_of_schedules()) {
    throw io::InputError(
        "`wrap` is of layers, which ddp has not: give `schedule`, such as fsdp, or leave it out");
  }
  if (!request.shards_by.empty() && !request.is_of_schedules()) {
    throw io::InputError(kUnsharded);
  }
  if (request.optimizer != kUsualOptimizer && !request.is_of_schedules()) {
    throw io::InputError(
        "`optimizer` is of `schedule` and `gpu_memory`: give one of them, or leave it out");
  }
  if (request.required_bandwidth && request.wraps.size() > 1) {
    throw io::InputError("`required_bandwidth` takes one rule of `wrap`: leave the others out");
  }
  if (request.required_bandwidth && !request.gpu_memory.empty()) {
    throw io::InputError(
        "`gpu_memory` chooses plans, and `required_bandwidth` finds none: leave one of them out");
  }
  if (asks_for_best(request) && !request.required_bandwidth && request.gpu_memory.empty()) {
    throw io::InputError("`schedule` BEST chooses by memory, too: give `gpu_memory`, such as 80GB");
  }
  if ((!request.break_even.empty() || request.advise) && request.is_of_schedules()) {
    throw io::InputError(
        "`break_even` and `advise` are of plans that average gradients in every step: leave them "
        "out, or `schedule` and what goes with it");
  }
  const AnalysisOptions& looks = request.request.analysis;
  const bool looks_at_one =
      looks.explain || !looks.compare.empty() || !looks.plan.empty() || looks.robust;
  if (looks_at_one && request.is_of_schedules()) {
    throw io::InputError(
        "`explain`, `compare`, `plan` and `robust` are of plans that average gradients in every "
        "step: leave them out, or `schedule` and what goes with it (hipress-sim `plan` simulates a "
        "plan of any schedule)");
  }
  if (request.utilization.empty() || request.required_bandwidth) return;
  throw io::InputError("`utilization` is of `required_bandwidth`: give that too, or leave it out");
}

namespace {

/// Says which of the request's fields plans of schedules know nothing of.
void warn_of_unused(const PlanRequest& request, const Hooks& hooks) {
  const Request& asked = request.request;
  const auto no_effect = [&](const char* field, std::string_view why) {
    warn(hooks, fmt::format("{} has no effect: {}", field, why));
  };
  constexpr std::string_view kOwnSearch = "plans of schedules have a search of their own";
  if (!asked.search.empty()) no_effect("`search`", kOwnSearch);
  if (asked.grouping == "any") no_effect("`grouping`", kOwnSearch);
  if (asked.transfer_order != "ready") no_effect("`transfer_order`", kOwnSearch);
  if (asked.seed != 0) no_effect("`seed`", kOwnSearch);
  if (!asked.analysis.disabled_passes.empty()) no_effect("`disable_pass`", kOwnSearch);
  const std::vector<std::string>& texts = request.schedules;
  const bool all_sharded =
      !texts.empty() && std::ranges::all_of(texts, [](const std::string& text) {
        return text.starts_with("fsdp") || text.starts_with("hsdp");
      });
  if (!all_sharded) return;
  constexpr std::string_view kLibrarys =
      "shards go by a library's collectives, one at a time on each network";
  const bool in_messages = carrier_of(request) != casync::kLibrary;
  if (asked.topology_given) {
    no_effect("`topology`", in_messages ? "shards go as `shards_by` says" : kLibrarys);
  }
  if (asked.network != "fair" && !in_messages) no_effect("`network`", kLibrarys);
}

/// Says which algorithms no sharded plan uses.
void say_left_out(const ScheduleAnswer& answer, const Hooks& hooks) {
  const bool any_other = std::ranges::any_of(
      answer.plans, [](const ScheduledPlan& one) { return !one.plan.schedule.is_sharded(); });
  if (any_other || !answer.request.algorithms_given) return;
  for (const std::string& name : answer.prepared.problem.algorithms) {
    if (may_reduce(name)) continue;
    inform(hooks, fmt::format("{} is left out: shards are encoded each for itself", name));
  }
}

/// Says what costs of the chosen plan's collectives are estimates.
void say_estimates(const ScheduleAnswer& answer, const Hooks& hooks) {
  const casync::Plan& plan = answer.plans[answer.chosen].plan;
  if (!plan.schedule.is_sharded()) return;
  const GpuProblem gpus(answer.prepared.problem);
  const sim::Scenario scenario = scenario_of(gpus.problem(), plan);
  const casync::TaskGraph graph = sim::expand(scenario, sim::Fold::kExactly).graph;
  for (const std::string& estimate : estimates_of(graph, scenario.profile)) {
    inform(hooks, estimate);
  }
}

/// Writes the plan, and says what it rests on.
void finish(const ScheduleAnswer& answer, const Hooks& hooks) {
  if (answer.request.required_bandwidth) return;
  say_left_out(answer, hooks);
  say_estimates(answer, hooks);
  write(answer, hooks);
}

}  // namespace

std::unique_ptr<const ScheduleAnswer> answer_of_schedules(const PlanRequest& request,
                                                          const Hooks& hooks) {
  refuse_unused(request);
  // Refused before files are read.
  if (request.required_bandwidth) utilizations_of(request);
  memory_limit(request);
  carrier_of(request);
  planner::find_optimizer(request.optimizer);
  warn_of_unused(request, hooks);
  Answers answers = prepare(request, hooks);
  for (const std::string& diagnostic : answers.front()->prepared.diagnostics) {
    inform(hooks, diagnostic);
  }
  try {
    if (answers.size() > 1) {
      std::unique_ptr<ScheduleAnswer> best = best_of_rules(std::move(answers), hooks);
      finish(*best, hooks);
      return best;
    }
    find(*answers.front(), hooks);
    finish(*answers.front(), hooks);
  } catch (const sim::Stopped&) {
    throw Interrupted();
  }
  return std::move(answers.front());
}

io::Document document(const ScheduleAnswer& answer) {
  const Problem& problem = answer.prepared.problem;
  if (answer.request.required_bandwidth) {
    Json rows = Json::list();
    for (const BandwidthTable& table : answer.bandwidths) {
      for (const RequiredBandwidth& row : table.rows) {
        rows.push_back({{"schedule", table.schedule},
                        {"algorithm", table.algorithm},
                        {"topology", table.topology},
                        {"utilization", row.utilization},
                        {"bits_per_s", row.bits_per_s},
                        {"bits_per_s_p10", row.bits_per_s_p10},
                        {"bits_per_s_p90", row.bits_per_s_p90},
                        {"reason", row.reason.empty() ? Json() : Json(row.reason)}});
      }
    }
    Json report = {{"required_bandwidth", rows}};
    add_mix(problem.machines->cluster, problem.model, report);
    return report;
  }
  Json rows = Json::list();
  for (const ScheduledPlan& plan : answer.plans) {
    Json row = document_of(problem, plan);
    if (!answer.baselines.empty()) row["not_chosen"] = why_not_chosen(answer, plan);
    rows.push_back(std::move(row));
  }
  const ScheduledPlan& chosen = answer.plans[answer.chosen];
  Json report = {{"model", problem.model.name}, {"nodes", problem.nodes}};
  report.update(document_of(problem, chosen));
  report.update({{"schedules", rows}, {"chosen", chosen.plan.schedule.text()}});
  add_mix(problem.machines->cluster, problem.model, report);
  if (!answer.baselines.empty()) add_baselines(answer, report);
  if (!answer.wraps.empty()) add_wraps(answer, report);
  if (asks_for_best(answer.request)) {
    Json left_out = Json::list();
    for (const LeftOutSchedule& one : answer.left_out) {
      left_out.push_back({{"schedule", one.schedule}, {"reason", one.reason}});
    }
    report["left_out"] = left_out;
  }
  return report;
}

}  // namespace hipress::requests
