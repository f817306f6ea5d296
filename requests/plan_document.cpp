#include "costs/assumed_spread.hpp"
#include "planner/bound/bound.hpp"
#include "planner/problem/state_memory.hpp"
#include "plans/plan_builder.hpp"
#include "requests/planned.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_records.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

void fill_pass(Record& record, const PassReport& pass) {
  record.add("name", pass.name, "As `disable_pass` takes it");
  record.add("s", pass.seconds, "Seconds that it took");
  record.add("iteration_before_s", pass.iteration_before_s, "The iteration before it");
  record.add("iteration_after_s", pass.iteration_after_s, "The iteration after it");
  record.add("changed", pass.changed, "Whether it changed the plan");
}

void fill_dense(Record& record, const plans::DenseFallback& dense) {
  record.add("above", dense.above, "From this density on, a share of the elements");
  record.add("algorithm", dense.algorithm, "With this algorithm");
  record.add("K", dense.partitions, "In so many partitions");
}

void fill_candidate(Record& record, const RobustCandidate& candidate) {
  record.add("name", candidate.name, "Which plan it is");
  record.add("replicas", candidate.spread.replicas, "Iterations simulated with jitter");
  record.add("mean_s", candidate.spread.mean_s, "Their mean");
  record.add("p50_s", candidate.spread.p50_s, "Their median");
  record.add("p90_s", candidate.spread.p90_s, "One in ten takes longer");
}

void fill_robust(Record& record, const RobustChoice& choice) {
  const auto& all = choice.candidates;
  const auto one = [&](std::size_t place) { return all.empty() ? RobustCandidate() : all[place]; };
  record.object("nominal", one(0), "The plan before", fill_candidate);
  record.object("robust", one(choice.best), "The plan that was chosen", fill_candidate);
  record.list("candidates", all, "All plans that it was chosen from", fill_candidate);
}

void fill_gradient(Record& record, const GradientRow& row, const Problem* problem) {
  const auto gradient = [&]() -> const models::Gradient& {
    return problem->model.gradients[row.gradient];
  };
  record.add(
      "name", [&] { return gradient().name; }, "The gradient");
  record.add(
      "elements", [&] { return gradient().elements; }, "Its elements");
  record.add("ready_s", row.ready_s, "When backward has computed it");
  record.add("done_s", row.done_s, "When every node has its mean");
  record.add("on_critical_path_s", row.on_path_s, "How long the critical path is in its tasks");
  record.add("option", row.option, "The algorithm and the number of partitions");
  record.add("runner_up", row.runner_up, "The next best; null: there is none");
  record.add("runner_up_cost_s", row.runner_up_cost_s,
             "What the iteration would lose by it; null: too large to simulate");
  record.add("why", sentence(row.why()), "The choice in a sentence");
}

void fill_memory(Record& record, const PlanMemory& memory) {
  record.add("residual_bytes_per_node", memory.residual_bytes,
             "Memory of error feedback and other states");
  record.add("buffer_bytes_per_node", memory.buffer_bytes, "Memory of messages");
}

void fill_figures(Record& record, const PlanFigures& figures) {
  record.add("iteration_s", figures.iteration_s, "The iteration");
  record.add("exposed_communication_s", figures.exposed_s, "What computation does not hide of it");
  record.add("bytes_sent_per_node", figures.bytes_per_node,
             "In one iteration, of the node that sends most");
  record.add("compressed", figures.compressed, "Gradients that are not sent raw");
  fill_memory(record, figures.memory);
}

void fill_difference(Record& record, const Difference& row) {
  record.add("what", row.what, "The gradient, or what else differs");
  record.add("first", row.first, "What it is in this plan");
  record.add("second", row.second, "What it is in the other");
  record.add("alone_s", row.alone_s,
             "What the other's choice alone changes this plan's iteration by; null: too large");
}

void fill_comparison(Record& record, const PlanComparison& comparison) {
  record.object("first", comparison.first, "This plan", fill_figures);
  record.object("second", comparison.second, "The other plan", fill_figures);
  record.add("worth_on_network_port", comparison.estimated,
             "Whether the worth is that on network port, because the planned one takes long");
  record.list("differences", comparison.differences, "What the plans differ in", fill_difference);
}

/// Adds "passes", and what else there is of "dense", "robust", "explain" and "compare".
void fill_analysis(Record& record, const Problem* problem, const Analysis& analysis) {
  record.list("passes", analysis.passes, "The passes that went over the plan, in their order",
              fill_pass);
  record.object_if_any("dense", analysis.dense,
                       "When sparse messages should be sent dense instead, where that pays",
                       fill_dense);
  record.object_if_any("robust", analysis.robust, "With `robust`", fill_robust);
  record.object_if_any(
      "explain", analysis.explanation, "With `explain`: why each gradient is treated as it is",
      [&](Record& explain, const Explanation& explanation) {
        fill_memory(explain, explanation.memory);
        explain.add(
            "runner_up_costs_on_network_port", explanation.estimated,
            "Whether costs of runners-up are those of network port, because the planned one takes "
            "long");
        explain.list("gradients", explanation.rows, "In the order of the model",
                     [&](Record& row, const GradientRow& of) { fill_gradient(row, of, problem); });
      });
  record.object_if_any("compare", analysis.comparison,
                       "With `compare`: two plans, and what each difference is worth",
                       fill_comparison);
}

void fill_turn(Record& record, const Turn& turn) {
  record.add("value", turn.value, "As likely on one side as on the other");
  record.add("compress", turn.compress_below ? "below" : "above",
             "Whether to compress below or above it");
  record.add("sure_below", turn.low, "Up to this value the verdict is sure; null: none");
  record.add("sure_above", turn.high, "From this value on it is sure; null: none");
}

void fill_elsewhere(Record& record, const Elsewhere& at) {
  const sim::Saving saving = at.saving.value_or(sim::Saving());
  record.add("value", at.value, "The value");
  record.add("compressed_s", at.compressed_s.value_or(0), "The iteration of the fastest plan");
  record.add("uncompressed_s", at.uncompressed_s.value_or(0),
             "That of the fastest without compression");
  record.add("speedup", 1 / (1 - saving.median), "The second over the first");
  record.add("speedup_p10", 1 / (1 - saving.p10), "The start of its 10–90 % interval");
  record.add("speedup_p90", 1 / (1 - saving.p90), "The end of its 10–90 % interval");
  record.add("probability", saving.probability, "That compression saves more than the tolerance");
  record.add("advice", to_string(at.answer), "The verdict there");
}

void fill_break_even(Record& record, const BreakEvenPoint& point, double tolerance) {
  const auto text = [&](std::string_view QuantityRow::*of) {
    return point.quantity != nullptr ? point.quantity->*of : std::string_view();
  };
  record.add("quantity", text(&QuantityRow::name), "What is varied");
  record.add("unit", text(&QuantityRow::unit), "The unit of values below");
  record.add("given", point.given, "The value that the cluster has");
  record.add(
      "sentences", [&] { return describe(point, tolerance); }, "The answer in words");
  record.list("turns", point.turns, "Each value at which the verdict turns", fill_turn);
  record.list("curve", point.curve, "Values that were planned for, in rising order",
              fill_elsewhere);
}

void fill_state(Record& record, const StateMemory& memory) {
  record.add("parameters", memory.parameters, "Parameters");
  record.add("gradients", memory.gradients, "Gradients");
  record.add("optimizer", memory.optimizer, "States of the optimizer");
  record.add("gathered", memory.gathered, "Layers that are gathered at a time");
  record.add("reductions", memory.reductions, "Inputs of reductions");
  record.add("residuals", memory.residuals, "What codecs keep of gradients");
}

/// The time `name`, with its interval beside it. None: it is not known.
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

/// A pilot's answer for a plan.
struct Learnt {
  std::string pilot;       ///< file
  std::int64_t steps = 0;  ///< of DDP
  StepsRatio ratio;
  double to_loss_s = 0;
  std::optional<double> today_to_loss_s;
};

/// The pilot's answer; empty without a pilot, or if it does not know the plan.
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
                   .today_to_loss_s = {}};
  if (const Baseline* const today = progress.today(problem)) {
    learnt.today_to_loss_s = *today->iteration_s * of_ddp;
  }
  return learnt;
}

void fill_learnt(Record& record, const Learnt& learnt) {
  record.add("pilot", learnt.pilot, "Its file");
  record.add("steps", learnt.steps, "Steps of DDP, to whose loss the others refer");
  record.add("steps_ratio", learnt.ratio.ratio, "The plan's steps over these for that loss");
  record.add("steps_ratio_p10", learnt.ratio.p10, "The start of its 10–90 % interval");
  record.add("steps_ratio_p90", learnt.ratio.p90, "The end of its 10–90 % interval");
  record.add("time_to_loss_s", learnt.to_loss_s, "Time of the plan's steps");
  record.add("today_to_loss_s", learnt.today_to_loss_s,
             "Time to that loss of what the job runs today; null: not simulated");
}

/// A plan as its schedule repeats it.
void fill_step(Record& record, const Problem* problem, const ScheduledPlan& plan) {
  const costs::Spread spread =
      problem != nullptr ? costs::spread_of(problem->machines->profile) : costs::Spread();
  const sim::Interval range = sim::interval(plan.response, spread);
  const bool in_shards = kind_of(plan.plan.schedule) == JobKind::kSharding;
  const bool bounded = plan.lower_bound_s > 0;
  record.add("schedule", plan.plan.schedule.text(), "When gradients are synchronised");
  record.add("steps_per_period", plan.steps, "Steps after which that repeats");
  record.add("topology", plan.plan.topology, "How what is compressed travels");
  record.add("shards_by", in_shards ? std::optional(plan.plan.shards_by) : std::nullopt,
             "What carries shards; null of schedules without");
  record.add(
      "algorithms", [&] { return plans::used_algorithms(problem->model, plan.plan); },
      "What it compresses with");
  record.add("compressed", plan.compressed, "Gradients that are not sent raw");
  record.add("predicted_iteration_s", plan.iteration_s, "A step, in seconds");
  record.add("predicted_iteration_s_p10", range.p10_s, "One step in ten is shorter");
  record.add("predicted_iteration_s_p90", range.p90_s, "One step in ten is longer");
  fill_load(record, sim::compute_utilisation(plan.response, plan.compute_s, spread), plan.traffic);
  record.add("lower_bound_s", bounded ? std::optional(plan.lower_bound_s) : std::nullopt,
             "No plan of the schedule takes less; null where none is known");
  record.add("gap",
             bounded ? std::optional(plan.iteration_s / plan.lower_bound_s - 1) : std::nullopt,
             "How far above it the plan is, as a share of the bound");
  record.add("peak_memory_bytes", plan.memory.total(), "Of a GPU");
  record.object("peak_memory", plan.memory, "What that consists of, in bytes", fill_state);
  record.add("gives_up", gives_up(plan), "What training gives up by it, in a sentence");
}

/// Adds what is known of the schedules that are compared, and of the plan's own.
void fill_schedules(Record& record, const Planned& planned) {
  const ScheduleRows none;
  const ScheduleRows& rows = planned.schedules ? *planned.schedules : none;
  const Problem* const problem = planned.advice.problem;
  constexpr const char* kWhyNot = "Why it was not chosen; null of the chosen one";
  const auto why_not = [](const std::optional<std::string>& why) {
    return why ? std::optional(sentence(*why)) : std::nullopt;
  };
  record.list("schedules", rows.plans,
              "With `schedule` or `wrap`: the plan of each schedule that was asked for",
              [&](Record& row, const ScheduledPlan& plan) {
                fill_step(row, problem, plan);
                row.add(
                    "not_chosen", [&] { return why_not(planned.why_not_chosen(plan)); }, kWhyNot);
              });
  record.add(
      "chosen", [&] { return rows.plans[rows.chosen].plan.schedule.text(); },
      "The schedule of the plan whose keys stand beside");
  std::vector<Baseline> of_frameworks;
  for (const Baseline& one : planned.advice.comparison.baselines) {
    if (one.iteration_s && !one.row().title.empty()) of_frameworks.push_back(one);
  }
  record.list("baseline_plans", of_frameworks, "The plans of baselines that frameworks run",
              [&](Record& row, const Baseline& one) {
                fill_step(row, problem,
                          problem != nullptr ? figures_of(*problem, one.plan, one.transfer_order)
                                             : ScheduledPlan());
                row.add("name", one.name, "The baseline");
              });
  record.list("left_out", rows.left_out, "Schedules that have no plan",
              [](Record& row, const LeftOutSchedule& one) {
                row.add("schedule", one.schedule, "The schedule");
                row.add("reason", sentence(one.reason), "Why");
              });
  record.section(!rows.wraps.empty(), [&] {
    record.list("wraps", rows.wraps, "With several rules of `wrap`: what each leads to",
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
               "With several rules of `wrap`: the one that was chosen");
  });
}

void fill_traced(Record& record, const models::Traced& traced) {
  record.add("step_s", traced.step_s, "A step of the traced job, in seconds");
  record.add("exposed_communication_s", traced.exposed_communication_s,
             "What of it is communication that nothing hides");
  record.add("most_gain", traced.exposed_communication_s / traced.step_s,
             "The second's share of the first: no plan can save more");
}

/// The times of the plan, of its rivals, and what is known of their order.
void fill_times(Record& record, const Planned& planned) {
  const Comparison& comparison = planned.advice.comparison;
  const auto range_of = [&](const std::optional<sim::Response>& response) {
    return response ? std::optional(sim::interval(*response, comparison.spread)) : std::nullopt;
  };
  const auto& raw = comparison.uncompressed;
  add_time(record, "predicted_iteration_s", comparison.planned_s, range_of(comparison.planned),
           "The simulated iteration in seconds; null if its graph is too large",
           "One iteration in ten is shorter; null without time for an interval",
           "One iteration in ten is longer");
  add_time(record, "best_uncompressed_s", raw ? std::optional(raw->plan.iteration_s) : std::nullopt,
           raw ? range_of(raw->response) : std::nullopt,
           "The same of the fastest known plan without compression; null where none may be used",
           "The start of its 10–90 % interval", "The end of its 10–90 % interval");
  record.object_if_any("traced", planned.traced, "Of a model that was imported from a trace",
                       fill_traced);
  record.add("lower_bound_s", comparison.lower_bound_s,
             "No plan that the search could return takes less; null where no search simulated");
  record.add("gap", comparison.gap(),
             "How far above the lower bound the plan is, as a share of the bound");
  record.add("proved_optimal", comparison.proved_optimal,
             "Whether no such plan is faster: by search exhaustive, unless it was interrupted");
  record.add("evaluations", planned.advice.found.evaluations,
             "Plans that the search simulated; 0 for search secopa");
  record.add("search_s", planned.advice.search_s, "Seconds that the search took");
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
                 "The iteration of each baseline", "In seconds; null: not simulated");
  record.by_name("baselines_p10", end_of(&sim::Interval::p10_s),
                 "The starts of their 10–90 % intervals", "In seconds");
  record.by_name("baselines_p90", end_of(&sim::Interval::p90_s),
                 "The ends of their 10–90 % intervals", "In seconds");
  record.by_name(
      "faster_than", of_each([&](const Baseline& one) -> std::optional<double> {
        if (!comparison.planned || !one.response) return std::nullopt;
        return sim::saving(*comparison.planned, *one.response, comparison.spread).probability;
      }),
      "The probability that the plan is faster than each baseline",
      "From 0 to 1; null: not simulated");
}

}  // namespace

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
  record.add("schedule", found.plan.schedule.text(), "When gradients are synchronised");
  record.add("gradients", found.plan.decisions.size(), "Gradients of the model");
  record.add(
      "compressed", [&] { return plans::count_compressed(problem->model, found.plan); },
      "Gradients that are not sent raw");
  record.add("topology", found.plan.topology, "How what is compressed travels");
  record.add("raw_topology", raw_topology_of(found.plan), "How what is raw travels");
  record.add("advice", to_string(advice.verdict.answer),
             "compress, do not compress, too close to call, or too uncertain");
  record.add("advice_probability", advice.verdict.probability,
             "The probability of what is advised; null where the advice does not depend on times, "
             "or they are too uncertain");
  record.add("verdict", sentence(advice.verdict.sentence),
             "The advice in a sentence, as the report has it");
  fill_times(record, planned);
  record.object_if_any("learning", learnt_of(planned),
                       "With `pilot`, where it knows the plan: time to the loss that DDP has",
                       fill_learnt);
  record.add(
      "peak_memory_bytes", [&] { return memory_of(*problem, found.plan).total(); },
      "Of a GPU, without activations");
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
                       "With `break_even`: where the verdict turns",
                       [&](Record& row, const BreakEvenPoint& point) {
                         fill_break_even(row, point, problem != nullptr ? problem->tolerance : 0);
                       });
  record.section(planned.request.advise,
                 [&] { record.add("in_words", planned.in_words, "With `advise`: sentences"); });
  // The page itself is made of a document without it.
  record.section(planned.request.page && !planned.page.empty(),
                 [&] { record.add("page", planned.page, "With `page`: the report as HTML"); });
}

constinit const ResultForm kPlanForm = {
    "plan", "A plan", "Of a plan request, unless it asks for bandwidths or a broadcast",
    schema_of<Planned>};

io::Document document(const Planned& planned) { return document_of(planned); }

}  // namespace hipress::requests
