#include "costs/assumed_spread.hpp"
#include "planner/bound/bound.hpp"
#include "planner/problem/pilot_pictures.hpp"
#include "planner/problem/state_memory.hpp"
#include "plans/plan_builder.hpp"
#include "requests/planned.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_records.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

void fill_pass(Record& record, const PassReport& pass) {
  record.add("name", pass.name, "Name, as in `disable_pass`");
  record.add("s", pass.seconds, "Duration of the pass, in seconds");
  record.add("iteration_before_s", pass.iteration_before_s, "Iteration time before the pass");
  record.add("iteration_after_s", pass.iteration_after_s, "Iteration time after the pass");
  record.add("changed", pass.changed, "True if the pass changed the plan");
}

void fill_dense(Record& record, const plans::DenseFallback& dense) {
  record.add("above", dense.above,
             "Density, as a share of the elements, from which dense is faster");
  record.add("algorithm", dense.algorithm, "Algorithm of dense messages");
  record.add("K", dense.partitions, "Number of partitions");
}

void fill_candidate(Record& record, const RobustCandidate& candidate) {
  record.add("name", candidate.name, "Name of the plan");
  record.add("replicas", candidate.spread.replicas, "Number of iterations simulated with jitter");
  record.add("mean_s", candidate.spread.mean_s, "Mean of the iteration times");
  record.add("p50_s", candidate.spread.p50_s, "Median of the iteration times");
  record.add("p90_s", candidate.spread.p90_s, "90th percentile");
}

void fill_robust(Record& record, const RobustChoice& choice) {
  const auto& all = choice.candidates;
  const auto one = [&](std::size_t place) { return all.empty() ? RobustCandidate() : all[place]; };
  record.object("nominal", one(0), "Plan before this choice", fill_candidate);
  record.object("robust", one(choice.best), "Chosen plan", fill_candidate);
  record.list("candidates", all, "All plans that were compared", fill_candidate);
}

void fill_gradient(Record& record, const GradientRow& row, const Problem* problem) {
  const auto gradient = [&]() -> const models::Gradient& {
    return problem->model.gradients[row.gradient];
  };
  record.add(
      "name", [&] { return gradient().name; }, "Name of the gradient");
  record.add(
      "elements", [&] { return gradient().elements; }, "Number of elements");
  record.add("ready_s", row.ready_s, "Time at which backward has computed it");
  record.add("done_s", row.done_s, "Time at which every node has its mean");
  record.add("on_critical_path_s", row.on_path_s,
             "Time that the critical path spends in its tasks");
  record.add("option", row.option, "Algorithm and number of partitions");
  record.add("runner_up", row.runner_up, "Second-best decision; null if there is only one");
  record.add("runner_up_cost_s", row.runner_up_cost_s,
             "Time by which the second-best decision lengthens the iteration; null if too large to "
             "simulate");
  record.add("why", sentence(row.why()), "Reason for the decision, in a sentence");
}

void fill_memory(Record& record, const PlanMemory& memory) {
  record.add("residual_bytes_per_node", memory.residual_bytes,
             "Memory of residuals and other states of codecs");
  record.add("buffer_bytes_per_node", memory.buffer_bytes, "Memory of messages");
}

void fill_figures(Record& record, const PlanFigures& figures) {
  record.add("iteration_s", figures.iteration_s, "Iteration time");
  record.add("exposed_communication_s", figures.exposed_s,
             "Exposed communication of the iteration");
  record.add("bytes_sent_per_node", figures.bytes_per_node,
             "Bytes sent in one iteration by the node that sends most");
  record.add("compressed", figures.compressed, "Number of gradients that are not sent raw");
  fill_memory(record, figures.memory);
}

void fill_difference(Record& record, const Difference& row) {
  record.add("what", row.what, "Gradient, or other part of the plan, that differs");
  record.add("first", row.first, "Value in this plan");
  record.add("second", row.second, "Value in the other plan");
  record.add("alone_s", row.alone_s,
             "Change of this plan's iteration if only this decision becomes the other plan's; null "
             "if too large to simulate");
}

void fill_comparison(Record& record, const PlanComparison& comparison) {
  record.object("first", comparison.first, "This plan", fill_figures);
  record.object("second", comparison.second, "The other plan", fill_figures);
  record.add("worth_on_network_port", comparison.estimated,
             "True if the changes were simulated on network port, because the planned network "
             "takes too long");
  record.list("differences", comparison.differences, "Differences between the plans",
              fill_difference);
}

/// Adds "passes" and, if present, "dense", "robust", "explain" and "compare".
void fill_analysis(Record& record, const Problem* problem, const Analysis& analysis) {
  record.list("passes", analysis.passes, "Passes that ran on the plan, in their order", fill_pass);
  record.object_if_any("dense", analysis.dense,
                       "Density from which sparse messages should be sent dense; only if that pays",
                       fill_dense);
  record.object_if_any("robust", analysis.robust, "Choice under uncertainty; with `robust`",
                       fill_robust);
  record.object_if_any(
      "explain", analysis.explanation, "Reasons for each gradient's decision; with `explain`",
      [&](Record& explain, const Explanation& explanation) {
        fill_memory(explain, explanation.memory);
        explain.add("runner_up_costs_on_network_port", explanation.estimated,
                    "True if costs of second-best decisions were simulated on network port, "
                    "because the planned network takes too long");
        explain.list("gradients", explanation.rows, "Gradients in the order of the model",
                     [&](Record& row, const GradientRow& of) { fill_gradient(row, of, problem); });
      });
  record.object_if_any("compare", analysis.comparison,
                       "Comparison of two plans and the cost of each difference; with `compare`",
                       fill_comparison);
}

void fill_turn(Record& record, const Turn& turn) {
  record.add("value", turn.value, "Value at which the verdict changes");
  record.add("compress", turn.compress_below ? "below" : "above",
             "Side on which compressing pays: below or above");
  record.add("sure_below", turn.low,
             "Value up to which the verdict is sure; null if there is none");
  record.add("sure_above", turn.high,
             "Value from which the verdict is sure; null if there is none");
}

void fill_elsewhere(Record& record, const Elsewhere& at) {
  const sim::Saving saving = at.saving.value_or(sim::Saving());
  record.add("value", at.value, "Value of the varied quantity");
  record.add("compressed_s", at.compressed_s.value_or(0), "Iteration time of the fastest plan");
  record.add("uncompressed_s", at.uncompressed_s.value_or(0),
             "Iteration time of the fastest plan without compression");
  record.add("speedup", 1 / (1 - saving.median),
             "Factor by which compression shortens the iteration");
  record.add("speedup_p10", 1 / (1 - saving.p10), "The start of its 10–90 % interval");
  record.add("speedup_p90", 1 / (1 - saving.p90), "The end of its 10–90 % interval");
  record.add("probability", saving.probability,
             "Probability that compression saves more than the tolerance");
  record.add("advice", to_string(at.answer), "Verdict at this value");
}

void fill_break_even(Record& record, const BreakEvenPoint& point, double tolerance) {
  const auto text = [&](std::string_view QuantityRow::*of) {
    return point.quantity != nullptr ? point.quantity->*of : std::string_view();
  };
  record.add("quantity", text(&QuantityRow::name), "Varied quantity");
  record.add("unit", text(&QuantityRow::unit), "Unit of the values");
  record.add("given", point.given, "Value of the given cluster");
  record.add(
      "sentences", [&] { return describe(point, tolerance); }, "Answer in words");
  record.list("turns", point.turns, "Values at which the verdict changes", fill_turn);
  record.list("curve", point.curve, "Simulated values, in ascending order", fill_elsewhere);
}

void fill_state(Record& record, const StateMemory& memory) {
  record.add("parameters", memory.parameters, "Parameters");
  record.add("gradients", memory.gradients, "Gradients");
  record.add("optimizer", memory.optimizer, "Optimizer state");
  record.add("gathered", memory.gathered, "Gathered layers");
  record.add("reductions", memory.reductions, "Inputs of reductions");
  record.add("residuals", memory.residuals, "Residuals of codecs");
}

/// Adds the time `name`, and its interval if known.
void add_time(Record& record, const std::string& name, const std::optional<double>& time_s,
              const std::optional<sim::Interval>& range, std::string_view help,
              std::string_view help_of_p10, std::string_view help_of_p90) {
  const auto end = [&](double sim::Interval::*of) {
    return range ? std::optional(*range.*of) : std::nullopt;
  };
  record.add(name, time_s, help);
  record.add(name + "_p10", end(&sim::Interval::p10_s), help_of_p10);
  record.add(name + "_p90", end(&sim::Interval::p90_s), help_of_p90);
}

void fill_throughput(Record& record, const models::Throughput& of) {
  record.add("units_per_s", of.units_per_s, "Units trained per second");
  record.add("unit", of.unit, "Unit: tokens, images, or what else the model is trained on");
  record.add(
      "mfu", of.mfu,
      "Model FLOPs utilisation of the GPUs; null if their peak or the model's work is unknown");
}

/// Time until a plan reaches DDP's loss at the end of the pilot.
struct Pace {
  std::string plan;  ///< "this plan", or the baseline's name
  double to_loss_s = 0;
  sim::Interval range;
};

/// Results of a pilot for a plan.
struct Learnt {
  std::string pilot;       ///< name of the file
  std::int64_t steps = 0;  ///< DDP's steps in the pilot
  StepsRatio ratio;
  double to_loss_s = 0;
  std::optional<double> today_to_loss_s;
  std::vector<Pace> paces;
  std::vector<LossPoint> loss;  ///< DDP's losses
};

/// Paces of the plan, and of baselines whose step times are known.
std::vector<Pace> paces_of(const Comparison& progress, double steps) {
  std::vector<Pace> paces;
  const auto add = [&](std::string name, double step_s,
                       const std::optional<sim::Response>& response) {
    const sim::Interval of_step =
        response ? sim::interval(*response, progress.spread) : sim::Interval{step_s, step_s};
    paces.push_back({.plan = std::move(name),
                     .to_loss_s = steps * step_s,
                     .range = {steps * of_step.p10_s, steps * of_step.p90_s}});
  };
  add("this plan", *progress.planned_s, progress.planned);
  for (const Baseline& one : progress.baselines) {
    if (one.iteration_s) add(std::string(one.name), *one.iteration_s, one.response);
  }
  return paces;
}

/// Results of the pilot for the plan; empty without a pilot, or if the pilot did not try the plan.
std::optional<Learnt> learnt_of(const Planned& planned) {
  const Advice& advice = planned.advice;
  if (advice.problem == nullptr || !advice.problem->learning) return std::nullopt;
  const Problem& problem = *advice.problem;
  const Comparison progress = by_progress(problem, advice.found.plan, advice.comparison);
  if (!progress.steps) return std::nullopt;
  const std::int64_t steps = problem.learning->steps;
  const auto of_ddp = static_cast<double>(steps);
  Learnt learnt = {.pilot = problem.learning->path,
                   .steps = steps,
                   .ratio = *progress.steps,
                   .to_loss_s = *progress.planned_s * of_ddp,
                   .today_to_loss_s = {},
                   .paces = paces_of(progress, of_ddp),
                   .loss = read_pilot_pictures(problem.learning->path).curve};
  if (const Baseline* const today = progress.today(problem)) {
    learnt.today_to_loss_s = *today->iteration_s * of_ddp;
  }
  return learnt;
}

void fill_learnt(Record& record, const Learnt& learnt) {
  record.add("pilot", learnt.pilot, "File of the pilot");
  record.add("steps", learnt.steps,
             "Number of DDP's steps; the other fields refer to DDP's loss after them");
  record.add("steps_ratio", learnt.ratio.ratio,
             "Steps that the plan needs for that loss, over those of DDP");
  record.add("steps_ratio_p10", learnt.ratio.p10, "The start of its 10–90 % interval");
  record.add("steps_ratio_p90", learnt.ratio.p90, "The end of its 10–90 % interval");
  record.add("time_to_loss_s", learnt.to_loss_s, "Time that the plan needs for that loss");
  record.add("today_to_loss_s", learnt.today_to_loss_s,
             "Time to that loss of the job's present plan; null if not simulated");
  record.list("paces", learnt.paces, "Time to DDP's final loss, for each plan",
              [](Record& row, const Pace& pace) {
                row.add("plan", pace.plan, "\"this plan\", or the name of a baseline");
                row.add("to_loss_s", pace.to_loss_s, "Steps of the plan, times its step time");
                row.add("to_loss_s_p10", pace.range.p10_s, "The start of its 10–90 % interval");
                row.add("to_loss_s_p90", pace.range.p90_s, "The end of its 10–90 % interval");
              });
  record.list("loss", learnt.loss, "Smoothed losses of DDP in the pilot",
              [](Record& row, const LossPoint& point) {
                row.add("step", point.step, "Number of DDP's steps so far");
                row.add("loss", point.loss, "Loss after that step");
              });
}

/// Adds a plan's figures, which are means over the period of its schedule.
void fill_step(Record& record, const Problem* problem, const ScheduledPlan& plan) {
  const costs::Spread spread =
      problem != nullptr ? costs::spread_of(problem->machines->profile) : costs::Spread();
  const sim::Interval range = sim::interval(plan.response, spread);
  const bool in_shards = kind_of(plan.plan.schedule) == JobKind::kSharding;
  const bool bounded = plan.lower_bound_s > 0;
  record.add("schedule", plan.plan.schedule.text(), "Schedule of the synchronisation");
  record.add("steps_per_period", plan.steps, "Number of steps after which the schedule repeats");
  record.add("topology", plan.plan.topology, "Topology of compressed gradients");
  record.add("shards_by", in_shards ? std::optional(plan.plan.shards_by) : std::nullopt,
             "Carrier of shards; null for schedules without shards");
  record.add(
      "algorithms", [&] { return plans::used_algorithms(problem->model, plan.plan); },
      "Algorithms that the plan uses");
  record.add("compressed", plan.compressed, "Number of gradients that are not sent raw");
  record.add("predicted_iteration_s", plan.iteration_s, "Time of a step, in seconds");
  record.add("predicted_iteration_s_p10", range.p10_s, "10th percentile of the step time");
  record.add("predicted_iteration_s_p90", range.p90_s, "90th percentile of the step time");
  fill_load(record, sim::compute_utilisation(plan.response, plan.compute_s, spread), plan.traffic);
  record.add("lower_bound_s", bounded ? std::optional(plan.lower_bound_s) : std::nullopt,
             "Lower bound of the step time under this schedule; null if unknown");
  record.add("gap",
             bounded ? std::optional(plan.iteration_s / plan.lower_bound_s - 1) : std::nullopt,
             "Gap of the plan above the lower bound, as a share of the bound");
  record.add("peak_memory_bytes", plan.memory.total(), "Peak memory of a GPU");
  record.object("peak_memory", plan.memory, "Parts of that memory, in bytes", fill_state);
  record.add("gives_up", gives_up(plan), "Effect of the schedule on training, in a sentence");
}

/// Adds data of the compared schedules, and of the plan's own schedule.
void fill_schedules(Record& record, const Planned& planned) {
  const ScheduleRows none;
  const ScheduleRows& rows = planned.schedules ? *planned.schedules : none;
  const Problem* const problem = planned.advice.problem;
  constexpr const char* kWhyNot = "Reason why it was not chosen; null for the chosen one";
  const auto why_not = [](const std::optional<std::string>& why) {
    return why ? std::optional(sentence(*why)) : std::nullopt;
  };
  record.list("schedules", rows.plans, "Plan of each requested schedule; with `schedule` or `wrap`",
              [&](Record& row, const ScheduledPlan& plan) {
                fill_step(row, problem, plan);
                row.add(
                    "not_chosen", [&] { return why_not(planned.why_not_chosen(plan)); }, kWhyNot);
              });
  record.add(
      "chosen", [&] { return rows.plans[rows.chosen].plan.schedule.text(); },
      "Schedule of the plan that this document describes");
  std::vector<Baseline> of_frameworks;
  for (const Baseline& one : planned.advice.comparison.baselines) {
    if (one.iteration_s && !one.row().title.empty()) of_frameworks.push_back(one);
  }
  record.list("baseline_plans", of_frameworks, "Plans of the baselines that frameworks run",
              [&](Record& row, const Baseline& one) {
                fill_step(row, problem,
                          problem != nullptr ? figures_of(*problem, one.plan, one.transfer_order)
                                             : ScheduledPlan());
                row.add("name", one.name, "Name of the baseline");
              });
  record.list("left_out", rows.left_out, "Schedules that have no plan",
              [](Record& row, const LeftOutSchedule& one) {
                row.add("schedule", one.schedule, "The schedule");
                row.add("reason", sentence(one.reason), "Why");
              });
  record.section(!rows.wraps.empty(), [&] {
    record.list("wraps", rows.wraps, "Result of each rule of `wrap`, if several were given",
                [&](Record& row, const WrapRow& of) {
                  row.section(of.plan.has_value(),
                              [&] { fill_step(row, problem, of.plan.value_or(ScheduledPlan())); });
                  row.add("wrap", of.rule, "The rule");
                  row.add(
                      "not_chosen",
                      of.not_chosen.empty() ? std::nullopt : std::optional(sentence(of.not_chosen)),
                      kWhyNot);
                });
    record.add("wrap", planned.request.request.wrap,
               "Rule of `wrap` that was chosen, if several were given");
  });
}

void fill_traced(Record& record, const models::Traced& traced) {
  record.add("step_s", traced.step_s, "Time of a step of the traced job, in seconds");
  record.add("exposed_communication_s", traced.exposed_communication_s,
             "Exposed communication of that step, in seconds");
  record.add("most_gain", traced.exposed_communication_s / traced.step_s,
             "Share of exposed communication in the step, which is the most that a plan can save");
}

/// Adds the times of the plan, its baselines and its bound.
void fill_times(Record& record, const Planned& planned) {
  const Comparison& comparison = planned.advice.comparison;
  const auto range_of = [&](const std::optional<sim::Response>& response) {
    return response ? std::optional(sim::interval(*response, comparison.spread)) : std::nullopt;
  };
  const auto& raw = comparison.uncompressed;
  add_time(record, "predicted_iteration_s", comparison.planned_s, range_of(comparison.planned),
           "Simulated iteration time in seconds; null if its graph is too large",
           "10th percentile of the iteration time; null if the budget left no time for an interval",
           "90th percentile of the iteration time");
  add_time(record, "best_uncompressed_s", raw ? std::optional(raw->plan.iteration_s) : std::nullopt,
           raw ? range_of(raw->response) : std::nullopt,
           "Iteration time of the fastest known plan without compression; null if no such plan is "
           "allowed",
           "The start of its 10–90 % interval", "The end of its 10–90 % interval");
  record.object_if_any("traced", planned.traced,
                       "Figures of the traced job, for models imported from a trace", fill_traced);
  record.add(
      "lower_bound_s", comparison.lower_bound_s,
      "Lower bound of the time of plans that the search may return; null if no search simulated");
  record.add("gap", comparison.gap(),
             "Gap of the plan above the lower bound, as a share of the bound");
  record.add("evaluations", planned.advice.found.evaluations,
             "Number of plans that the search simulated; 0 for search secopa");
  record.add("search_s", planned.advice.search_s, "Duration of the search, in seconds");
  using Values = std::vector<std::pair<std::string_view, std::optional<double>>>;
  const auto of_each = [&](const auto& value_of) {
    Values values;
    for (const Baseline& one : comparison.baselines) values.emplace_back(one.name, value_of(one));
    return values.empty() ? std::nullopt : std::optional(values);
  };
  const auto end_of = [&](double sim::Interval::*end) {
    return of_each([&](const Baseline& one) -> std::optional<double> {
      const std::optional<sim::Interval> range = range_of(one.response);
      return range ? std::optional(*range.*end) : std::nullopt;
    });
  };
  record.by_name("baselines", of_each([](const Baseline& one) { return one.iteration_s; }),
                 "Iteration time of each baseline", "In seconds; null if not simulated");
  record.by_name("baselines_p10", end_of(&sim::Interval::p10_s),
                 "The starts of their 10–90 % intervals", "In seconds");
  record.by_name("baselines_p90", end_of(&sim::Interval::p90_s),
                 "The ends of their 10–90 % intervals", "In seconds");
  record.by_name(
      "faster_than", of_each([&](const Baseline& one) -> std::optional<double> {
        if (!comparison.planned || !one.response) return std::nullopt;
        return sim::saving(*comparison.planned, *one.response, comparison.spread).probability;
      }),
      "Probability that the plan is faster than each baseline",
      "From 0 to 1; null if not simulated");
}

}  // namespace

std::optional<models::Throughput> throughput_of(const Planned& planned) {
  const Advice& advice = planned.advice;
  if (advice.problem == nullptr || !advice.comparison.planned_s) return std::nullopt;
  const std::uint32_t of_node = advice.problem->machines->cluster.gpus_per_node;
  return models::throughput(advice.problem->model, advice.found.plan.nodes * of_node,
                            *advice.comparison.planned_s);
}

std::string gives_up(const ScheduledPlan& plan) {
  const std::string text = plan.plan.schedule.gives_up();
  return text.empty() ? text : plan.plan.schedule.text() + ": " + text;
}

std::optional<std::string> Planned::why_not_chosen(const ScheduledPlan& plan) const {
  const ScheduledPlan& chosen = schedules->plans[schedules->chosen];
  if (&plan == &chosen) return std::nullopt;
  return reason_against(plan, chosen, room_of(prepared->problem));
}

void fill(Record& record, const Planned& planned) {
  const Advice& advice = planned.advice;
  const Problem* const problem = advice.problem;
  const SearchResult& found = advice.found;
  record.add(
      "model", [&] { return problem->model.name; }, "The model's name");
  record.add(
      "nodes", [&] { return planned.prepared->given_nodes; }, "Nodes of the cluster");
  record.add("schedule", found.plan.schedule.text(), "Schedule of the synchronisation");
  record.add("gradients", found.plan.decisions.size(), "Number of gradients of the model");
  record.add(
      "compressed", [&] { return plans::count_compressed(problem->model, found.plan); },
      "Number of gradients that are not sent raw");
  record.add("topology", found.plan.topology, "Topology of compressed gradients");
  record.add("raw_topology", raw_topology_of(found.plan), "Topology of raw gradients");
  record.add("advice", to_string(advice.verdict.answer),
             "Verdict: compress, do not compress, too close to call, or too uncertain");
  record.add("advice_probability", advice.verdict.probability,
             "Probability of the verdict; null if the verdict does not depend on times, or they "
             "are too uncertain");
  record.add("verdict", sentence(advice.verdict.sentence),
             "Verdict in a sentence, as in the report");
  fill_times(record, planned);
  record.object_if_any("throughput", throughput_of(planned),
                       "Throughput of all GPUs together; only for models with a batch",
                       fill_throughput);
  record.object_if_any("learning", learnt_of(planned),
                       "Time to DDP's loss; with `pilot`, if it knows the plan", fill_learnt);
  record.add(
      "peak_memory_bytes", [&] { return memory_of(*problem, found.plan).total(); },
      "Peak memory of a GPU, without activations");
  record.section(planned.schedules.has_value(), [&] {
    fill_step(
        record, problem,
        planned.schedules ? planned.schedules->plans[planned.schedules->chosen] : ScheduledPlan());
    fill_schedules(record, planned);
  });
  fill_mix(record, problem != nullptr ? &problem->machines->cluster : nullptr,
           problem != nullptr ? &problem->model : nullptr);
  fill_analysis(record, problem, advice.analysis);
  record.object_if_any("break_even", planned.break_even,
                       "Values at which the verdict changes; with `break_even`",
                       [&](Record& row, const BreakEvenPoint& point) {
                         fill_break_even(row, point, problem != nullptr ? problem->tolerance : 0);
                       });
  record.section(planned.request.advise, [&] {
    record.add("in_words", planned.in_words, "Advice in sentences; with `advise`");
  });
  // The page is made from a document that has no page yet.
  record.section(planned.request.page && !planned.page.empty(),
                 [&] { record.add("page", planned.page, "Report as HTML; with `page`"); });
}

constinit const ResultForm kPlanForm = {
    "plan", "A plan", "Result of a plan request, unless it asks for bandwidths or a broadcast",
    schema_of<Planned>};

io::Document document(const Planned& planned) { return document_of(planned); }

}  // namespace hipress::requests
