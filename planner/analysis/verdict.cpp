#include "planner/analysis/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "io/quantity.hpp"
#include "planner/bound/bound.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr double kNothing = 5e-4;  // less is 0.0 % in words

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string sure(double probability) {
  return fmt::format("{:.0f} % sure", 100 * std::min(probability, 0.99));
}

/// Range of percentages, such as "30 to 44", with one decimal if both are below 10.
std::string range_of(const sim::Saving& saving) {
  constexpr double kSmall = 0.1;
  const bool small = std::max(std::abs(saving.p10), std::abs(saving.p90)) < kSmall;
  return small ? fmt::format("{:.1f} to {:.1f}", 100 * saving.p10, 100 * saving.p90)
               : fmt::format("{:.0f} to {:.0f}", 100 * saving.p10, 100 * saving.p90);
}

/// True if steps do not average all gradients; sentences then give schedule and memory.
bool says_schedule(const casync::Plan& plan) {
  return kind_of(plan.schedule) != JobKind::kAveraging;
}

std::string memory_text(std::int64_t bytes) {
  return io::format_amount(bytes, 3) + " of a GPU's memory";
}

/// Clause on the plan's time: "113ms (105ms to 122ms) an iteration", "hsdp takes … a step".
std::string planned_time(const casync::Plan& plan, const Comparison& comparison) {
  const std::string time =
      with_interval(*comparison.planned_s, comparison.planned, comparison.spread);
  if (comparison.steps) return time + " for what DDP learns in a step";
  if (!says_schedule(plan)) return time + " an iteration";
  return fmt::format("{} takes {} a step", plan.schedule.text(), time);
}

/// Name of a baseline in sentences: "PyTorch DDP", "baseline all".
std::string title_of(const BaselineRow& row) {
  return row.title.empty() ? "baseline " + std::string(row.name) : std::string(row.title);
}

std::string name_of(const Contender& rival) {
  if (rival.name.empty()) return "the best plan without compression";
  return title_of(*find_baseline(rival.name));
}

/// Clause ", and half precision alone would save 61ms", for a plan with a larger loss than half
/// precision has. Empty for other plans, and if no plan in half precision was simulated.
std::string about_half_precision(const casync::Plan& plan, const Comparison& comparison,
                                 double rival_s) {
  const bool is_coarser =
      std::ranges::any_of(plan.decisions, [&](const casync::Decision& decision) {
        return decision.algorithm != casync::kRaw &&
               !plan.algorithms[static_cast<std::size_t>(decision.algorithm)].half_precision;
      });
  if (!is_coarser || says_schedule(plan)) return "";
  std::optional<double> fastest_s;
  for (const Baseline& baseline : comparison.baselines) {
    const bool half = std::ranges::all_of(baseline.plan.algorithms,
                                          [](const auto& used) { return used.half_precision; });
    const bool compressed = std::ranges::any_of(
        baseline.plan.decisions, [](const auto& one) { return one.algorithm != casync::kRaw; });
    if (!baseline.iteration_s || !half || !compressed) continue;
    fastest_s = std::min(fastest_s.value_or(*baseline.iteration_s), *baseline.iteration_s);
  }
  if (!fastest_s) return "";
  return *fastest_s < rival_s
             ? ", and half precision alone would save " + io::format_duration(rival_s - *fastest_s)
             : ", and half precision alone would save nothing";
}

/// The value, quoted for a shell.
std::string quoted(const std::string& value) {
  return value.find('(') == std::string::npos ? value : "'" + value + "'";
}

/// Fields that make the plan: "`schedule` 'fsdp(reshard=8)' and `algorithm` int8block,int4block".
std::string fields_of(const casync::Plan& plan) {
  std::string names;
  for (const casync::Algorithm& one : plan.algorithms) {
    names += (names.empty() ? "" : ",") + one.name;
  }
  const std::string schedule = "`schedule` " + quoted(plan.schedule.text());
  return names.empty() ? schedule : schedule + " and `algorithm` " + quoted(names);
}

/// Options, in brackets, with which the rival would become the plan; empty if none are needed.
std::string how_to_say(const Problem& problem, const Contender& rival) {
  const bool runs = !rival.name.empty() && !find_baseline(rival.name)->title.empty();
  const casync::Plan& plan = rival.plan.plan;
  if (runs && says_schedule(plan)) {
    return fmt::format(" (give {})", fields_of(plan));
  }
  if (runs || may_be_plan(problem, plan)) return "";
  if (rival.plan.plan.nodes != problem.nodes) {
    return fmt::format(" (N = {}: take `output` X.yaml)", rival.plan.plan.nodes);
  }
  const bool elsewhere = problem.topology != "best" && rival.plan.plan.topology != problem.topology;
  return elsewhere ? " (take `topology` BEST)" : " (groups: take `output` X.yaml)";
}

/// Reason for a missing probability.
constexpr std::string_view kNoInterval =
    "probability unknown: the budget left no time for intervals";

/// Saving of the first plan over the second, by the times alone if a response is missing.
sim::Saving saving_of(double first_s, const std::optional<sim::Response>& first, double second_s,
                      const std::optional<sim::Response>& second, const costs::Spread& spread,
                      double margin = 0) {
  if (first && second) return sim::saving(*first, *second, spread, margin);
  const double saved = second_s > 0 ? 1 - first_s / second_s : 0;
  return {saved, saved, saved, saved > margin ? 1.0 : 0.0};
}

/// Verdict on a plan without compression.
Verdict without_compression(const Problem& problem, const casync::Plan& plan,
                            const Comparison& comparison) {
  const double planned_s = *comparison.planned_s;
  const std::string time = with_interval(planned_s, comparison.planned, comparison.spread);
  Verdict verdict = {.answer = Answer::kDoNotCompress, .sentence = {}};
  const auto because_of = [&](const std::string& times, const std::string& why) {
    verdict.sentence = fmt::format("do not compress: {}; {}", times, why);
    return verdict;
  };
  const std::string alone = planned_time(plan, comparison) + " uncompressed";
  if (problem.nodes == 1) return because_of(alone, "a job of one node sends nothing");
  if (problem.algorithms.empty()) {
    return because_of(alone, "`algorithm` none allows no compression");
  }
  // The fastest plan without compression may not be one that the plan file can hold.
  const std::optional<Contender>& rival = comparison.uncompressed;
  const bool elsewhere = rival && rival->plan.iteration_s < planned_s;
  const double rival_s = elsewhere ? rival->plan.iteration_s : planned_s;
  const std::optional<sim::Response>& response = elsewhere ? rival->response : comparison.planned;
  const auto because = [&](const std::string& why) {
    if (!elsewhere) return because_of(alone, why);
    return because_of(fmt::format("{}{} takes {}, this plan, also uncompressed, {}",
                                  name_of(*rival), how_to_say(problem, *rival),
                                  with_interval(rival_s, response, comparison.spread), time),
                      why);
  };
  if (!comparison.compressed) {
    return because(sends_raw_alone(problem.topology) && !says_schedule(plan)
                       ? problem.topology + " compresses nothing"
                       : "no allowed compression is faster");
  }
  const Contender& best = *comparison.compressed;
  const double saved = 1 - best.plan.iteration_s / rival_s;
  const double worth = saving_of(best.plan.iteration_s, best.response, rival_s, response,
                                 comparison.spread, problem.tolerance)
                           .probability;
  if (response && best.response) verdict.probability = 1 - worth;
  if (std::abs(saved) < kNothing) return because("compression would save nothing");
  return because(saved > 0 ? fmt::format("compression would save {}, which is not worth its loss "
                                         "(tolerance {})",
                                         percent(saved), percent(problem.tolerance))
                           : fmt::format("compression would take {} longer", percent(-saved)));
}

bool is_faster(const Problem& problem, const Comparison& comparison, const Baseline& one) {
  return *one.iteration_s < *comparison.planned_s * (1 - problem.tolerance);
}

bool fits(const Problem& problem, const Baseline& one) {
  return one.memory.total() <= room_of(problem);
}

/// Reference for savings: what the job runs today, otherwise the best plan without compression.
Contender what_decides(const Problem& problem, const Comparison& comparison) {
  const Baseline* const today = comparison.today(problem);
  const bool counts = today != nullptr && (!problem.today.empty() || fits(problem, *today));
  if (!counts) return *comparison.uncompressed;
  return {.name = std::string(today->name),
          .plan = {today->plan, today->transfer_order, *today->iteration_s},
          .response = today->response};
}

/// Saving of the plan over its rival: "67ms of 180ms (37.1 %, 30 to 44) over PyTorch DDP". Also
/// over the best plan without compression, if that is not the rival.
std::string savings(const Contender& rival, const Comparison& comparison) {
  const double planned_s = *comparison.planned_s;
  const auto over = [&](const Contender& other) {
    const double time_s = other.plan.iteration_s;
    const bool known = comparison.planned && other.response;
    const sim::Saving saving =
        saving_of(planned_s, comparison.planned, time_s, other.response, comparison.spread);
    return fmt::format("{} of {} ({}{}) over {}", io::format_duration(time_s - planned_s),
                       io::format_duration(time_s), percent(1 - planned_s / time_s),
                       known ? ", " + range_of(saving) : "", name_of(other));
  };
  const Contender& plain = *comparison.uncompressed;
  if (plain.name == rival.name) return over(rival);
  const double plain_s = plain.plan.iteration_s;
  const bool known = comparison.planned && plain.response;
  const sim::Saving little =
      saving_of(planned_s, comparison.planned, plain_s, plain.response, comparison.spread);
  if (!known || little.p10 > 0) return over(rival) + ", and " + over(plain);
  return fmt::format("{}, and perhaps {} of the {} of {}", over(rival),
                     percent(1 - planned_s / plain_s), io::format_duration(plain_s),
                     name_of(plain));
}

/// Verdict on a plan with compression, against what_decides() and the best uncompressed plan.
Verdict with_compression(const Problem& problem, const casync::Plan& plan,
                         const Comparison& comparison) {
  const double planned_s = *comparison.planned_s;
  const std::string time = planned_time(plan, comparison);
  const std::string what = what_is_compressed(problem, plan);
  if (!comparison.uncompressed) {
    return {.answer = Answer::kTooClose,
            .sentence = fmt::format(
                "too close to call: {}; {}; no plan without compression {}", what, time,
                problem.memory_bytes < INT64_MAX ? "fits into `gpu_memory` and was simulated"
                                                 : "was simulated")};
  }
  const Contender rival = what_decides(problem, comparison);
  const double rival_s = rival.plan.iteration_s;
  const sim::Saving saving =
      saving_of(planned_s, comparison.planned, rival_s, rival.response, comparison.spread);
  const double plain_s = comparison.uncompressed->plan.iteration_s;
  const double saved = 1 - planned_s / std::min(rival_s, plain_s);
  const bool is_known = comparison.planned && rival.response;
  const auto is_sure = [&](const Contender& other) {
    if (!comparison.planned || !other.response) return true;
    const sim::Saving over = sim::saving(*comparison.planned, *other.response, comparison.spread);
    return over.probability >= kSure && over.p10 >= kNothing;
  };
  const Contender& plain = *comparison.uncompressed;
  const bool runs = !plain.name.empty() && !find_baseline(plain.name)->title.empty();
  if (saved > problem.tolerance && is_sure(rival) && (!runs || is_sure(plain))) {
    return {
        Answer::kCompress, is_known ? std::optional(saving.probability) : std::nullopt,
        fmt::format("compress ({}): {}; {}; saves {}{}",
                    is_known ? sure(saving.probability) : kNoInterval, what, time,
                    savings(rival, comparison), about_half_precision(plan, comparison, plain_s))};
  }
  if (saved <= problem.tolerance) {
    const bool by_plain = plain_s < rival_s;
    const Contender& best = by_plain ? *comparison.uncompressed : rival;
    const double best_s = best.plan.iteration_s;
    const double worth = saving_of(planned_s, comparison.planned, best_s, best.response,
                                   comparison.spread, problem.tolerance)
                             .probability;
    return {Answer::kDoNotCompress,
            comparison.planned && best.response ? std::optional(1 - worth) : std::nullopt,
            fmt::format("do not compress{}: {}{} takes {}, this plan ({}) {}: {}",
                        compresses(problem.model, best.plan.plan) ? " differently from today" : "",
                        name_of(best), how_to_say(problem, best),
                        with_interval(best_s, best.response, comparison.spread), what,
                        with_interval(planned_s, comparison.planned, comparison.spread),
                        saved > 0 ? fmt::format("saving {} is not worth its loss (tolerance {})",
                                                percent(saved), percent(problem.tolerance))
                                  : fmt::format("{} longer", percent(-saved)))};
  }
  const Contender& close = is_sure(rival) ? plain : rival;
  const double close_s = close.plan.iteration_s;
  const sim::Saving little =
      saving_of(planned_s, comparison.planned, close_s, close.response, comparison.spread);
  const bool is_close_known = comparison.planned && close.response;
  return {
      Answer::kTooClose, is_close_known ? std::optional(little.probability) : std::nullopt,
      fmt::format(
          "too close to call: {}; {}, {} {}; saves {}{}, and compression is faster with a "
          "probability of {:.0f} %",
          what, time, name_of(close), with_interval(close_s, close.response, comparison.spread),
          percent(1 - planned_s / close_s),
          is_close_known ? fmt::format(" ({})", range_of(little)) : "", 100 * little.probability)};
}

/// Verdict for the case that compression pays, but not with this plan; unset if it does not pay.
std::optional<Verdict> compress_elsewhere(const Problem& problem, const Comparison& comparison) {
  if (!comparison.elsewhere) return std::nullopt;
  const Contender& best = *comparison.elsewhere;
  const double planned_s = *comparison.planned_s;
  const bool plan_is_faster =
      !comparison.uncompressed || planned_s <= comparison.uncompressed->plan.iteration_s;
  const double rival_s = plan_is_faster ? planned_s : comparison.uncompressed->plan.iteration_s;
  const double probability =
      saving_of(best.plan.iteration_s, best.response, rival_s,
                plan_is_faster ? comparison.planned : comparison.uncompressed->response,
                comparison.spread, problem.tolerance)
          .probability;
  if (best.plan.iteration_s >= rival_s * (1 - problem.tolerance) || probability < kSure) {
    return std::nullopt;
  }
  const bool is_known =
      best.response && (plan_is_faster ? comparison.planned : comparison.uncompressed->response);
  std::string text = fmt::format(
      "compress, but with another plan ({}): {}{} takes {}, this plan {}",
      is_known ? sure(probability) : kNoInterval, name_of(best), how_to_say(problem, best),
      with_interval(best.plan.iteration_s, best.response, comparison.spread),
      with_interval(planned_s, comparison.planned, comparison.spread));
  if (!plan_is_faster) {
    text += fmt::format(", {} {}", name_of(*comparison.uncompressed), io::format_duration(rival_s));
  }
  return Verdict{Answer::kCompress, is_known ? std::optional(probability) : std::nullopt, text};
}

/// True if the sentence begins with "compress (99 % sure): " or the like.
bool has_bracket(const Verdict& verdict) {
  return verdict.sentence.starts_with(std::string(to_string(verdict.answer)) + " (");
}

/// Inserts the text after the answer: "compress (99 % sure): ".
void insert_after_answer(const std::string& text, Verdict& verdict) {
  const std::string_view end = has_bracket(verdict) ? "): " : ": ";
  const std::size_t answer = verdict.sentence.find(end);
  verdict.sentence.insert(answer == std::string::npos ? 0 : answer + end.size(), text);
}

/// Adds the text to the answer: "compress (99 % sure, text): ".
void add_to_answer(const std::string& text, Verdict& verdict) {
  const bool in_bracket = has_bracket(verdict);
  const std::size_t end = verdict.sentence.find(in_bracket ? "): " : ": ");
  if (end == std::string::npos) return;
  verdict.sentence.insert(end, in_bracket ? ", " + text : " (" + text + ")");
}

/// Begins the sentence with a better framework row, if any: beyond the tolerance it takes less time
/// or memory than the plan, but not more of the other, and its loss is not larger.
void name_better(const Problem& problem, const casync::Plan& plan, const Comparison& comparison,
                 Verdict& verdict) {
  const double slack = 1 + problem.tolerance;
  const auto memory = static_cast<double>(memory_of(problem, plan).total());
  const Coarseness given_up = coarseness_of(problem, plan);
  const Baseline* best = nullptr;
  for (const Baseline& one : comparison.baselines) {
    if (!one.iteration_s || one.row().title.empty() || !fits(problem, one)) continue;
    if (!says_schedule(plan) && !says_schedule(one.plan))
      // The rest of the sentence already names this row, as a rival.
      continue;
    const double time_s = *one.iteration_s;
    const auto bytes = static_cast<double>(one.memory.total());
    const bool no_worse = time_s <= *comparison.planned_s * slack && bytes <= memory * slack &&
                          !(given_up < coarseness_of(problem, one.plan));
    const bool better = time_s * slack < *comparison.planned_s || bytes * slack < memory;
    if (!no_worse || !better) continue;
    const bool before = best == nullptr || time_s < *best->iteration_s;
    if (before) best = &one;
  }
  if (best == nullptr) return;
  const std::string text = fmt::format(
      "{} ({}) takes {} and {}, this plan {} and {}, and gives up no more; ", best->row().title,
      fields_of(best->plan), with_interval(*best->iteration_s, best->response, comparison.spread),
      memory_text(best->memory.total()),
      with_interval(*comparison.planned_s, comparison.planned, comparison.spread),
      memory_text(static_cast<std::int64_t>(memory)));
  insert_after_answer(text, verdict);
}

/// True if the sentence contains the row's title, and not only as the beginning of a longer title.
bool names(const std::string& sentence, std::string_view title) {
  const auto goes_on = [&](std::string_view rest) {
    return std::ranges::any_of(all_baselines(), [&](const BaselineRow& row) {
      return row.title.size() > title.size() && row.title.starts_with(title) &&
             rest.starts_with(row.title);
    });
  };
  for (std::size_t at = sentence.find(title); at != std::string::npos;
       at = sentence.find(title, at + 1)) {
    if (!goes_on(std::string_view(sentence).substr(at))) return true;
  }
  return false;
}

/// Simulated baselines, the fastest first.
std::vector<const Baseline*> by_time_s(const std::vector<Baseline>& baselines) {
  std::vector<const Baseline*> sorted;
  for (const Baseline& one : baselines) {
    if (one.iteration_s) sorted.push_back(&one);
  }
  std::ranges::stable_sort(sorted, {}, [](const Baseline* one) { return *one->iteration_s; });
  return sorted;
}

/// Clauses on framework rows that are faster than the plan, then on what jobs of this kind run: ";
/// PyTorch DDP with its fp16 hook takes 143ms, less than this plan; PyTorch DDP takes 180ms".
std::string about_others(const Problem& problem, const casync::Plan& plan,
                         const Comparison& comparison, const std::string& said) {
  const Baseline* const today = comparison.today(problem);
  const Coarseness given_up = coarseness_of(problem, plan);
  constexpr int kMostFaster = 3;
  int faster_rows = 0;
  std::string faster, others;
  for (const Baseline* const by_time : by_time_s(comparison.baselines)) {
    const Baseline& one = *by_time;
    const BaselineRow& row = one.row();
    if (row.title.empty()) continue;
    const bool less = is_faster(problem, comparison, one);
    const bool is_usual =
        &one == today || row.is_default || (row.compresses && compresses(problem.model, one.plan));
    if ((!less && !is_usual) || names(said, row.title)) continue;
    if (less && fits(problem, one) && ++faster_rows > kMostFaster) continue;
    std::string text =
        fmt::format("; {} takes {}", row.title, io::format_duration(*one.iteration_s));
    if (less && fits(problem, one)) {
      const Coarseness coarser = coarseness_of(problem, one.plan);
      text +=
          fmt::format(", less than this plan{}", given_up < coarser ? ", and gives up more" : "");
    }
    if (says_schedule(plan) || says_schedule(one.plan)) {
      text += fmt::format(" ({} a GPU{})", io::format_amount(one.memory.total(), 3),
                          fits(problem, one) ? "" : ", which does not fit");
    }
    (less && fits(problem, one) ? faster : others) += text;
  }
  const bool is_of_collectives = !comparison.all_reduce_diagnostic.empty() && !says_schedule(plan);
  if (!(faster + others).empty() && is_of_collectives) {
    others += " (" + comparison.all_reduce_diagnostic + ")";
  }
  return faster + others;
}

/// Applies doubt() to the times of the plan, and of the fastest plans without and with compression.
void doubt_times(const casync::Plan& plan, const Comparison& comparison, Verdict& verdict) {
  std::string times =
      (says_schedule(plan) ? "" : "this plan takes ") + planned_time(plan, comparison);
  std::optional<sim::Response> uncompressed, compressed;
  if (const auto& raw = comparison.uncompressed) {
    uncompressed = raw->response;
    times += fmt::format(", {} {}", name_of(*raw),
                         with_interval(raw->plan.iteration_s, uncompressed, comparison.spread));
  }
  if (comparison.compressed) compressed = comparison.compressed->response;
  doubt({&comparison.planned, &uncompressed, &compressed}, comparison.spread, times, verdict);
}

/// Multiplies a time and its response by the ratio of steps of its plan.
void scale(const StepsRatio& steps, double& time_s, std::optional<sim::Response>& response) {
  time_s *= steps.ratio;
  if (!response) return;
  response->factor = steps.ratio;
  response->factor_deviation = steps.deviation();
}

}  // namespace

Comparison by_progress(const Problem& problem, const casync::Plan& plan, Comparison comparison) {
  if (!problem.learning || !comparison.planned_s) return comparison;
  const auto steps_for = [&](const casync::Plan& one) {
    return problem.learning->of(problem.model, one);
  };
  comparison.steps = problem.learning->of(problem.model, plan, problem.plan_file);
  if (!comparison.steps) return comparison;
  scale(*comparison.steps, *comparison.planned_s, comparison.planned);
  for (Baseline& one : comparison.baselines) {
    if (!one.iteration_s) continue;
    const std::optional<StepsRatio> steps = steps_for(one.plan);
    if (steps) {
      scale(*steps, *one.iteration_s, one.response);
    } else {
      one.iteration_s = std::nullopt;
    }
  }
  for (std::optional<Contender>* const rival :
       {&comparison.uncompressed, &comparison.elsewhere, &comparison.compressed}) {
    if (!*rival) continue;
    const std::optional<StepsRatio> steps = steps_for((*rival)->plan.plan);
    if (steps) {
      scale(*steps, (*rival)->plan.iteration_s, (*rival)->response);
    } else {
      rival->reset();
    }
  }
  return comparison;
}

std::string about_learning(const Problem& problem, const casync::Plan& plan,
                           const Comparison& comparison) {
  if (!comparison.steps) {
    if (problem.learning) return "learning not measured: this plan is not in the pilot";
    const std::vector<std::string> used = plans::used_algorithms(problem.model, plan);
    const auto slows = [&](const std::string& name) {
      return !learns_as_ddp(problem.accuracy.coarseness(name));
    };
    return std::ranges::any_of(used, slows) ? "learning not measured: run hipress.pilot" : "";
  }
  if (!compresses(problem.model, plan)) return "";  // the plan needs as many steps as DDP
  const auto steps = static_cast<double>(problem.learning->steps);
  std::string text =
      fmt::format("reaches the loss that DDP has after {:.0f} steps in {:.0f} ({:.0f} to {:.0f})",
                  steps, steps * comparison.steps->ratio, steps * comparison.steps->p10,
                  steps * comparison.steps->p90);
  if (const Baseline* const today = comparison.today(problem)) {
    const sim::Saving saving = saving_of(*comparison.planned_s, comparison.planned,
                                         *today->iteration_s, today->response, comparison.spread);
    text += fmt::format(", {:.2g} times as soon as {} ({:.2g} to {:.2g})",
                        *today->iteration_s / *comparison.planned_s, title_of(today->row()),
                        1 / (1 - saving.p10), 1 / (1 - saving.p90));
  }
  return text + "; ";
}

std::optional<double> Comparison::gap() const {
  if (!planned_s || !lower_bound_s) return std::nullopt;
  return planner::gap(*planned_s, *lower_bound_s);
}

const char* to_string(Answer answer) {
  switch (answer) {
    case Answer::kCompress:
      return "compress";
    case Answer::kDoNotCompress:
      return "do not compress";
    case Answer::kTooUncertain:
      return "too uncertain";
    case Answer::kTooClose:
      break;
  }
  return "too close to call";
}

const Baseline* Comparison::today(const Problem& problem) const {
  const JobKind kind = kind_of(problem.schedule);
  const Baseline* found = nullptr;
  for (const Baseline& one : baselines) {
    const bool is_it =
        problem.today.empty()
            ? one.row().is_default && (one.row().kind == kind || kind == JobKind::kLocalUpdates)
            : one.name == problem.today;
    if (is_it && one.iteration_s) found = &one;
  }
  return found;
}

bool compresses(const models::Model& model, const casync::Plan& plan) {
  if (kind_of(plan.schedule) == JobKind::kSharding) {
    return !std::ranges::all_of(plans::used_algorithms(model, plan), plans::is_cast);
  }
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    if (!plans::is_raw(model.gradients[g], plan, plan.decisions[g])) return true;
  }
  return false;
}

std::string with_interval(double time_s, const std::optional<sim::Response>& response,
                          const costs::Spread& spread) {
  const std::string time = io::format_duration(time_s);
  if (!response) return time;
  const sim::Interval range = sim::interval(*response, spread);
  return fmt::format("{} ({} to {})", time, io::format_duration(range.p10_s),
                     io::format_duration(range.p90_s));
}

void doubt(std::initializer_list<const std::optional<sim::Response>*> compared,
           const costs::Spread& spread, const std::string& times, Verdict& verdict) {
  const bool is_wide =
      std::ranges::any_of(compared, [&](const std::optional<sim::Response>* response) {
        return *response && sim::too_uncertain(sim::interval(**response, spread));
      });
  if (!is_wide || !verdict.probability) return;
  verdict = {
      .answer = Answer::kTooUncertain,
      .sentence = fmt::format(
          "too uncertain: {}; an interval wider than a factor of {} decides nothing: measure "
          "the machines with hipress-profile while they are steady",
          times, sim::kWidestInterval)};
}

void weaken(models::MissingTimes missing, Verdict& verdict, const Comparison& comparison) {
  if (missing == models::MissingTimes::kNone || verdict.answer != Answer::kCompress) return;
  if (missing == models::MissingTimes::kForward) {
    verdict.sentence =
        "without a forward time (`forward`), iterations take longer than these, and the saved "
        "share is smaller: " +
        verdict.sentence;
    return;
  }
  std::string most = " anything or nothing";
  if (comparison.planned_s && comparison.uncompressed) {
    const double rival_s = comparison.uncompressed->plan.iteration_s;
    most = fmt::format(" between nothing and {} of {}",
                       io::format_duration(rival_s - *comparison.planned_s),
                       io::format_duration(rival_s));
  }
  verdict = {.answer = Answer::kTooClose,
             .sentence = fmt::format(
                 "too close to call: without ready times the exposed communication is unknown, so "
                 "compression saves{} (give `compute_time`). If all communication is exposed: {}",
                 most, verdict.sentence)};
}

std::string other_hardware(std::string_view source, std::string_view hardware) {
  constexpr std::array<std::string_view, 8> kNames = {"P100", "V100", "T4",   "A100",
                                                      "L40S", "H100", "H200", "B200"};
  const auto named_in = [&](std::string_view text) {
    std::string_view found;
    for (const std::string_view name : kNames) {
      if (text.find(name) == std::string_view::npos) continue;
      if (!found.empty()) return std::string_view();  // ambiguous
      found = name;
    }
    return found;
  };
  const std::string_view measured = named_in(source), planned = named_in(hardware);
  if (measured.empty() || planned.empty() || measured == planned) return {};
  return fmt::format(
      "computation was timed on {}, and the profile is of {} (give `compute_time`): ", measured,
      planned);
}

Verdict judge(const Problem& problem, const casync::Plan& plan, const Comparison& times) {
  const Comparison comparison = by_progress(problem, plan, times);
  if (!comparison.planned_s) {
    const std::string why = comparison.not_simulated.empty()
                                ? "this plan's graph is too large to be simulated"
                                : comparison.not_simulated;
    return {.answer = Answer::kTooClose, .sentence = "too close to call: " + why};
  }
  Verdict verdict = compresses(problem.model, plan)
                        ? with_compression(problem, plan, comparison)
                        : without_compression(problem, plan, comparison);
  std::optional<Verdict> elsewhere;
  if (verdict.answer != Answer::kCompress) elsewhere = compress_elsewhere(problem, comparison);
  if (elsewhere) verdict = *elsewhere;
  doubt_times(plan, comparison, verdict);
  if (!elsewhere) name_better(problem, plan, comparison, verdict);
  verdict.sentence += about_others(problem, plan, comparison, verdict.sentence);
  const std::string learning = about_learning(problem, plan, comparison);
  if (learning.empty()) return verdict;
  if (comparison.steps) {
    insert_after_answer(learning, verdict);
  } else {
    add_to_answer(learning, verdict);
  }
  return verdict;
}

}  // namespace hipress::planner
