#include "requests/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "planner/baselines/named_plans.hpp"
#include "planner/problem/state_memory.hpp"
#include "plans/plan_file.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

planner::Hooks hooks_of(const Hooks& hooks) {
  planner::Hooks made;
  made.warn = [hooks](const std::string& text) { warn(hooks, text); };
  made.interrupted = hooks.interrupted;
  made.searched = hooks.stage_done;
  if (!hooks.progress) return made;
  made.progress = [report = hooks.progress](double share, double best_s) {
    report({.stage = "search", .share = share, .best_s = best_s});
  };
  return made;
}

/// Schedule of a given plan; ddp if no plan is given.
casync::Schedule schedule_of_given(const Request& request) {
  const std::string& plan = request.analysis.plan;
  if (plan.empty()) return {};
  if (const auto text = plans::schedule_of_plan(plan)) return casync::Schedule::parse(*text);
  const bool in_shards = kind_of_named_plan(plan) == JobKind::kSharding;
  return in_shards ? casync::Schedule::parse("fsdp") : casync::Schedule();
}

/// Converts the request for the planner. Leaves out its schedules.
Request planner_request(const PlanRequest& request) {
  Request made = request.request;
  made.machines = request.machines();
  made.shards_by = request.known_shards_by();
  made.optimizer = request.optimizer;
  made.memory_bytes = memory_limit(request).value_or(INT64_MAX);
  if (!request.activation_memory.empty()) {
    made.activation_bytes = io::parse_size(request.activation_memory, "`activation_memory`");
  }
  made.today = request.today;
  made.topology_given = request.is_given("topology");
  made.transfer_order_given = request.is_given("transfer_order");
  made.analysis.report = !request.report.empty();
  made.schedule = schedule_of_given(made);
  // A machine's GPUs have no parameter servers (PS). BEST includes a library's all-reduce.
  const bool chooses = made.search.empty() || find_search(made.search).optimises;
  const bool open = !made.topology_given && made.analysis.plan.empty();
  if (made.machines.names_machine() && open && chooses) made.topology = "BEST";
  return made;
}

/// Rejects outputs that cannot be written, would replace an input, or have the same name.
void check_outputs(const PlanRequest& request, bool writes_plan) {
  if (writes_plan) {
    io::require_writable(request.output);
    io::refuse_input(request.output);
  }
  if (request.report.empty()) return;
  io::require_writable(request.report);
  io::refuse_input(request.report);
  if (writes_plan && request.report == request.output) {
    throw io::InputError(fmt::format("`report` and `output` are one file, {}: give two names",
                                     io::quote(request.report)));
  }
}

/// Rejects impossible questions, and outputs that cannot be written, before a search.
void check_prepared(const PlanRequest& request, const PreparedRequest& prepared) {
  const BaselineRow* const today = find_baseline(request.today);
  const bool compares = request.schedules.size() > 1 || asks_for_best(request);
  if (today != nullptr && !compares && !today->is_for(kind_of(prepared.problem.schedule))) {
    throw io::InputError(fmt::format("`today`: no job of schedule {} runs {}",
                                     prepared.problem.schedule.text(), today->name));
  }
  if (!request.break_even.empty()) check_break_even(prepared, find_quantity(request.break_even));
  const bool writes = prepared.searches() && !request.output.empty();
  check_outputs(request, writes);
  if (writes && !request.yaml() && prepared.problem.schedule == casync::Schedule()) {
    plans::require_text_names(prepared.model);
  }
}

/// The plan found for a schedule and a rule for layers.
struct Candidate {
  std::unique_ptr<PreparedRequest> prepared;
  Advice advice;
  ScheduledPlan plan;
};

/// Candidates that share one rule for layers.
class Candidates {
 public:
  Candidates(const PlanRequest& request, std::string rule, const Hooks& hooks, std::size_t rules)
      : request_(request), hooks_(hooks) {
    base_ = planner_request(request);
    base_.wrap = std::move(rule);
    const PlanRequest probed = with(base_);
    const auto probe = prepare(probed, {});
    asked_ = asked_schedules(probed, probe->problem);
    const bool given = request.schedules.empty() && !base_.analysis.plan.empty();
    if (given) asked_.schedules = {{base_.schedule, base_.schedule.text()}};
    share_ = static_cast<double>(rules * asked_.schedules.size());
    compares_ = asked_.schedules.size() > 1;
    PlanRequest known = probed;
    if (compares_ && known.request.search.empty()) known.request.search = "timeline";
    for (const AskedSchedule& one : asked_.schedules) known.kinds.push_back(kind_of(one.schedule));
    refuse_unfit(known);
    *warnings_ = without_effect(fields(known));
  }

  /// Finds the plan of each schedule. Leaves out schedules without a plan; throws if none is left.
  void find() {
    for (std::size_t i = 0; i < asked_.schedules.size(); ++i) {
      look_for_interrupt(hooks_);
      try {
        found_.push_back(find(asked_.schedules[i].schedule));
      } catch (const io::InputError& error) {
        if (i + 1 == asked_.schedules.size() && found_.empty()) throw;
        asked_.left_out.push_back({asked_.schedules[i].text, error.what()});
      }
    }
  }

  /// Moves the best candidate out. The others cannot be used afterwards.
  std::unique_ptr<Planned> take_best() {
    ScheduleRows rows{.plans = {}, .left_out = std::move(asked_.left_out), .wraps = {}};
    for (const Candidate& one : found_) rows.plans.push_back(one.plan);
    const Problem& problem = found_.front().prepared->problem;
    rows.chosen = choose_schedule(rows.plans, base_.tolerance, room_of(problem));
    Candidate& best = found_[rows.chosen];
    for (const std::string& warning : *warnings_) warn(hooks_, warning);
    add_baselines_of_others(best);
    const auto& budget = best.prepared->problem.machines->budget;
    if (budget && compares_) budget->restart();
    return std::make_unique<Planned>(Planned{.request = with(base_),
                                             .prepared = std::move(best.prepared),
                                             .advice = std::move(best.advice),
                                             .schedules = std::move(rows)});
  }

 private:
  PlanRequest with(const Request& request) const {
    PlanRequest made = request_;
    made.request = request;
    return made;
  }

  Candidate find(const casync::Schedule& schedule) {
    Request asked = base_;
    asked.schedule = schedule;
    if (compares_) {
      // Frameworks average with a library's all-reduce, which BEST includes.
      const bool averages = kind_of(schedule) == JobKind::kAveraging;
      if (averages && !asked.topology_given) asked.topology = "BEST";
      if (averages && asked.search.empty()) asked.search = "timeline";
    }
    if (share_ > 1) {
      asked.budget_s = asked.budget_s.value_or(Limits{}.budget_s) / share_;
      if (asked.evaluations) {
        const auto all = static_cast<double>(*asked.evaluations);
        asked.evaluations = std::max<std::int64_t>(1, static_cast<std::int64_t>(all / share_));
      }
    }
    Hooks quiet = hooks_;
    quiet.warn = [warnings = warnings_](const std::string& text) {
      if (std::ranges::find(*warnings, text) == warnings->end()) warnings->push_back(text);
    };
    Candidate made;
    made.prepared = std::make_unique<PreparedRequest>(asked, request_.form(), hooks_of(quiet));
    check_prepared(request_, *made.prepared);
    if (made.prepared->optimises() && hooks_.optimises && found_.empty()) hooks_.optimises();
    made.advice = find_advice(*made.prepared);
    if (compares_ && asked.algorithms == "none") run_by_library(made.advice);
    made.plan =
        figures_of(*made.advice.problem, made.advice.found.plan, made.advice.found.transfer_order);
    made.plan.lower_bound_s = made.advice.found.lower_bound_s;
    return made;
  }

  /// Adds the frameworks' baselines of the other requested kinds of jobs.
  void add_baselines_of_others(Candidate& best) {
    std::vector<Baseline>& rows = best.advice.comparison.baselines;
    for (const Candidate& other : found_) {
      if (&other == &best) continue;
      for (const Baseline& one : other.advice.comparison.baselines) {
        const bool is_there = std::ranges::find(rows, one.name, &Baseline::name) != rows.end();
        if (!one.row().title.empty() && !is_there) rows.push_back(one);
      }
    }
  }

  /// Replaces an uncompressed plan that averages in every step by the frameworks' default (DDP).
  static void run_by_library(Advice& advice) {
    if (kind_of(advice.found.plan.schedule) != JobKind::kAveraging) return;
    for (const Baseline& one : advice.comparison.baselines) {
      if (!one.row().is_default || !one.iteration_s || one.row().kind != JobKind::kAveraging)
        continue;
      advice.keeps_plan = true;
      advice.found.plan = one.plan;
      advice.found.transfer_order = one.transfer_order;
      advice.comparison.planned_s = advice.comparison.least_found_s = one.iteration_s;
    }
  }

  const PlanRequest& request_;
  const Hooks& hooks_;
  Request base_;
  AskedSchedules asked_;
  double share_ = 1;
  bool compares_ = false;
  std::vector<Candidate> found_;
  /// Warnings so far: candidates cause the same ones, and each is given only once.
  std::shared_ptr<std::vector<std::string>> warnings_ =
      std::make_shared<std::vector<std::string>>();
};

/// Plan of the best rule for layers, with the results of the other rules.
std::unique_ptr<Planned> best_of_rules(const PlanRequest& request, const Hooks& hooks) {
  std::vector<std::string> rules;
  for (const std::string& rule : request.wraps) {
    if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
  }
  std::vector<WrapRow> rows;
  std::vector<std::unique_ptr<Planned>> best;
  std::vector<ScheduledPlan> plans;
  std::vector<std::size_t> of_plan;  // indices into `rules`
  std::vector<Candidates>
      all;  // constructed first: a rule that does not fit the model is rejected before any search
  for (const std::string& rule : rules) all.emplace_back(request, rule, hooks, rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rows.push_back({.rule = rules[i], .plan = {}, .not_chosen = {}});
    try {
      all[i].find();
      best.push_back(all[i].take_best());
      plans.push_back(best.back()->schedules->plans[best.back()->schedules->chosen]);
      of_plan.push_back(i);
      rows.back().plan = plans.back();
    } catch (const io::InputError& error) {
      if (i + 1 == rules.size() && plans.empty()) throw;
      rows.back().not_chosen = error.what();
    }
  }
  const std::size_t chosen = choose_schedule(plans, request.request.tolerance);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (k == chosen) continue;
    rows[of_plan[k]].not_chosen = reason_against(plans[k], plans[chosen], INT64_MAX);
  }
  best[chosen]->schedules->wraps = std::move(rows);
  const auto& budget = best[chosen]->prepared->problem.machines->budget;
  if (budget) budget->restart();
  return std::move(best[chosen]);
}

/// True if the request averages in every step, and compares no schedules.
bool is_plain(const PlanRequest& request) {
  const bool is_default =
      request.schedules.empty() || request.schedules == std::vector<std::string>{"ddp"};
  return is_default && request.wraps.empty();
}

}  // namespace

std::unique_ptr<PreparedRequest> prepare(const PlanRequest& request, const Hooks& hooks) {
  Request asked = planner_request(request);
  asked.analysis = {};  // no analyses of a plan
  if (asked.search.empty()) asked.search = "timeline";
  return std::make_unique<PreparedRequest>(asked, PlanForm::kYaml, hooks_of(hooks));
}

std::unique_ptr<Planned> best_candidate(const PlanRequest& request, const Hooks& hooks) {
  if (!is_plain(request)) {
    if (request.wraps.size() > 1) return best_of_rules(request, hooks);
    Candidates candidates(request, request.wraps.empty() ? "" : request.wraps.front(), hooks, 1);
    candidates.find();
    return candidates.take_best();
  }
  const Request asked = planner_request(request);
  PlanRequest known = request;
  known.kinds = {kind_of(asked.schedule)};
  refuse_unfit(known);
  warn_of_idle(fields(known), hooks);
  auto prepared = std::make_unique<PreparedRequest>(asked, request.form(), hooks_of(hooks));
  check_prepared(request, *prepared);
  if (prepared->optimises() && hooks.optimises) hooks.optimises();
  Advice advice = find_advice(*prepared);
  const StateMemory memory = memory_of(*advice.problem, advice.found.plan);
  if (prepared->searches() && !fits(*advice.problem, advice.found.plan)) {
    refuse_memory(memory.total(), advice.problem->activation_bytes);
  }
  return std::make_unique<Planned>(
      Planned{.request = request, .prepared = std::move(prepared), .advice = std::move(advice)});
}

void check(const PlanRequest& request) {
  memory_limit(request);
  request.known_shards_by();
  find_optimizer(request.optimizer);
  if (!request.today.empty() && find_baseline(request.today) == nullptr) {
    std::vector<std::string_view> known;
    for (const BaselineRow& row : all_baselines()) known.push_back(row.name);
    throw io::InputError(fmt::format("`today`: {} is no baseline{}", io::quote(request.today),
                                     io::suggestion(request.today, known)));
  }
  if (asks_for_best(request) && !request.required_bandwidth && request.gpu_memory.empty()) {
    throw io::InputError("`schedule` BEST chooses by memory, too: give `gpu_memory`, such as 80GB");
  }
  const std::optional<std::int64_t> memory = memory_limit(request);
  if (memory && !request.activation_memory.empty() &&
      io::parse_size(request.activation_memory, "`activation_memory`") >= *memory) {
    throw io::InputError(fmt::format("`activation_memory` {} leaves nothing of `gpu_memory` {}",
                                     request.activation_memory, request.gpu_memory));
  }
}

}  // namespace hipress::requests
