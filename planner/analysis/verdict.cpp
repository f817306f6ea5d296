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

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string sure(double probability) {
  return fmt::format("{:.0f} % sure", 100 * std::min(probability, 0.99));
}

/// "; PyTorch DDP takes 180ms, with its fp16 hook 143ms", and whether that is faster than the plan
/// by more than the tolerance.
std::string about_ddp(const Problem& problem, const Comparison& comparison) {
  std::string text;
  for (const Baseline& baseline : comparison.baselines) {
    if (!baseline.iteration_s) continue;
    std::string time = io::format_duration(*baseline.iteration_s);
    if (*baseline.iteration_s < *comparison.planned_s * (1 - problem.tolerance)) {
      time += ", less than this plan";
    }
    if (baseline.name == "ddp") text += "; PyTorch DDP takes " + time;
    if (baseline.name == "ddp_fp16") {
      text += (text.empty() ? "; PyTorch DDP with its fp16 hook takes " : ", with its fp16 hook ") +
              time;
    }
  }
  if (text.empty() || comparison.all_reduce_diagnostic.empty()) return text;
  return text + " (" + comparison.all_reduce_diagnostic + ")";
}

std::string name_of(const Contender& rival) {
  if (rival.name == "ddp") return "PyTorch DDP";
  if (rival.name == "ddp_fp16") return "PyTorch DDP with its fp16 hook";
  return rival.name.empty() ? "the best plan without compression" : "baseline " + rival.name;
}

/// ", and half precision alone would save 61ms", where the plan gives up more than that; empty if
/// it does not, or where nothing in half precision was simulated.
std::string about_half_precision(const casync::Plan& plan, const Comparison& comparison,
                                 double rival_s) {
  const bool is_coarser =
      std::ranges::any_of(plan.decisions, [&](const casync::Decision& decision) {
        return decision.algorithm != casync::kRaw &&
               !plan.algorithms[static_cast<std::size_t>(decision.algorithm)].half_precision;
      });
  if (!is_coarser) return "";
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

/// What it takes for the rival to be the plan, where that is its groups alone.
std::string how_to_say(const Problem& problem, const Contender& rival) {
  if (rival.name.starts_with("ddp") || may_be_plan(problem, rival.plan.plan)) return "";
  if (rival.plan.plan.nodes != problem.nodes) {
    return fmt::format(" (N = {}: take `output` X.yaml)", rival.plan.plan.nodes);
  }
  const bool topology = problem.strategy != "best" && rival.plan.plan.strategy != problem.strategy;
  return topology ? " (take `topology` BEST)" : " (groups: take `output` X.yaml)";
}

/// Why nothing says how sure an advice is.
constexpr std::string_view kNoInterval =
    "how sure is not known: the budget left no time for intervals";

/// What the first saves of the second; without responses, as times alone say.
sim::Saving saving_of(double first_s, const std::optional<sim::Response>& first, double second_s,
                      const std::optional<sim::Response>& second, const costs::Spread& spread,
                      double margin = 0) {
  if (first && second) return sim::saving(*first, *second, spread, margin);
  const double saved = second_s > 0 ? 1 - first_s / second_s : 0;
  return {saved, saved, saved, saved > margin ? 1.0 : 0.0};
}

/// Where the plan compresses nothing.
Verdict without_compression(const Problem& problem, const Comparison& comparison) {
  const double planned_s = *comparison.planned_s;
  const std::string time = with_interval(planned_s, comparison.planned, comparison.spread);
  Verdict verdict = {.answer = Answer::kDoNotCompress, .sentence = {}};
  const auto because_of = [&](const std::string& times, const std::string& why) {
    verdict.sentence = fmt::format("do not compress: {}; {}", times, why);
    return verdict;
  };
  const std::string alone = time + " an iteration uncompressed";
  if (problem.nodes == 1) return because_of(alone, "one node has no other to send to");
  if (problem.algorithms.empty()) {
    return because_of(alone, "`algorithm` none allows no compression");
  }
  if (!comparison.compressed) return because_of(alone, problem.strategy + " compresses nothing");
  const Contender& best = *comparison.compressed;
  // The fastest without compression may be none that the file can say.
  const std::optional<Contender>& rival = comparison.uncompressed;
  const bool elsewhere = rival && rival->plan.iteration_s < planned_s;
  const double rival_s = elsewhere ? rival->plan.iteration_s : planned_s;
  const std::optional<sim::Response>& response = elsewhere ? rival->response : comparison.planned;
  const double saved = 1 - best.plan.iteration_s / rival_s;
  const double worth = saving_of(best.plan.iteration_s, best.response, rival_s, response,
                                 comparison.spread, problem.tolerance)
                           .probability;
  if (response && best.response) verdict.probability = 1 - worth;
  const auto because = [&](const std::string& why) {
    if (!elsewhere) return because_of(time + " an iteration uncompressed", why);
    return because_of(fmt::format("{}{} takes {} an iteration, this plan, uncompressed too, {}",
                                  name_of(*rival), how_to_say(problem, *rival),
                                  with_interval(rival_s, response, comparison.spread), time),
                      why);
  };
  constexpr double kNothing = 5e-4;  // less is 0.0 % in words
  if (std::abs(saved) < kNothing) return because("compression would save nothing");
  return because(saved > 0 ? fmt::format("compression would save {}, which is not worth its loss "
                                         "(tolerance {})",
                                         percent(saved), percent(problem.tolerance))
                           : fmt::format("compression would take {} longer", percent(-saved)));
}

/// Where the plan compresses: laid beside its best rival without compression.
Verdict with_compression(const Problem& problem, const casync::Plan& plan,
                         const Comparison& comparison) {
  const double planned_s = *comparison.planned_s;
  const std::string time = with_interval(planned_s, comparison.planned, comparison.spread);
  if (!comparison.uncompressed) {
    return {
        .answer = Answer::kTooClose,
        .sentence = fmt::format(
            "too close to call: {} an iteration; no plan without compression was simulated", time)};
  }
  const Contender& rival = *comparison.uncompressed;
  const double rival_s = rival.plan.iteration_s;
  const sim::Saving saving =
      saving_of(planned_s, comparison.planned, rival_s, rival.response, comparison.spread);
  const double saved = 1 - planned_s / rival_s;
  const bool is_known = comparison.planned && rival.response;
  const auto known = [&](double probability) {
    return is_known ? std::optional(probability) : std::nullopt;
  };
  if (saved > problem.tolerance && saving.probability >= kSure) {
    const std::string range =
        is_known ? fmt::format(", {:.0f} to {:.0f}", 100 * saving.p10, 100 * saving.p90) : "";
    return {Answer::kCompress, known(saving.probability),
            fmt::format("compress ({}): {} an iteration; saves {} of {} ({}{}) over {}{}",
                        is_known ? sure(saving.probability) : kNoInterval, time,
                        io::format_duration(rival_s - planned_s), io::format_duration(rival_s),
                        percent(saved), range, name_of(rival),
                        about_half_precision(plan, comparison, rival_s))};
  }
  const std::string rival_time = with_interval(rival_s, rival.response, comparison.spread);
  if (saved <= problem.tolerance) {
    const double worth = saving_of(planned_s, comparison.planned, rival_s, rival.response,
                                   comparison.spread, problem.tolerance)
                             .probability;
    return {Answer::kDoNotCompress, known(1 - worth),
            fmt::format("do not compress: {}{} takes {} an iteration, this plan {}: {}",
                        name_of(rival), how_to_say(problem, rival), rival_time, time,
                        saved > 0 ? fmt::format("saving {} is not worth its loss (tolerance {})",
                                                percent(saved), percent(problem.tolerance))
                                  : fmt::format("{} longer", percent(-saved)))};
  }
  return {
      Answer::kTooClose, known(saving.probability),
      fmt::format("too close to call: {} an iteration, {} {}; saves {}, and compression is faster "
                  "with a probability of {:.0f} %",
                  time, name_of(rival), rival_time, percent(saved), 100 * saving.probability)};
}

/// Where compression pays, but not by this plan; none: it does not.
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
      "compress, but otherwise ({}): {}{} takes {} an iteration, this plan {}",
      is_known ? sure(probability) : kNoInterval, name_of(best), how_to_say(problem, best),
      with_interval(best.plan.iteration_s, best.response, comparison.spread),
      with_interval(planned_s, comparison.planned, comparison.spread));
  if (!plan_is_faster) {
    text += fmt::format(", {} {}", name_of(*comparison.uncompressed), io::format_duration(rival_s));
  }
  return Verdict{Answer::kCompress, is_known ? std::optional(probability) : std::nullopt, text};
}

/// Doubts a verdict by the plan, the fastest without compression and the fastest with it.
void doubt_times(const Comparison& comparison, Verdict& verdict) {
  std::string times = "this plan takes " +
                      with_interval(*comparison.planned_s, comparison.planned, comparison.spread) +
                      " an iteration";
  std::optional<sim::Response> uncompressed, compressed;
  if (const auto& raw = comparison.uncompressed) {
    uncompressed = raw->response;
    times += fmt::format(", {} {}", name_of(*raw),
                         with_interval(raw->plan.iteration_s, uncompressed, comparison.spread));
  }
  if (comparison.compressed) compressed = comparison.compressed->response;
  doubt({&comparison.planned, &uncompressed, &compressed}, comparison.spread, times, verdict);
}

}  // namespace

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

bool compresses(const models::Model& model, const casync::Plan& plan) {
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
        "without a forward time (`forward`) iterations are longer than these, and the share that "
        "is saved is smaller: " +
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
                 "too close to call: without ready times it is not known how much communication "
                 "hides behind computation, so compression saves{} (give `compute_time`). "
                 "If nothing hides it: {}",
                 most, verdict.sentence)};
}

std::string other_hardware(std::string_view source, std::string_view hardware) {
  constexpr std::array<std::string_view, 8> kNames = {"P100", "V100", "T4",   "A100",
                                                      "L40S", "H100", "H200", "B200"};
  const auto named_in = [&](std::string_view text) {
    std::string_view found;
    for (const std::string_view name : kNames) {
      if (text.find(name) == std::string_view::npos) continue;
      if (!found.empty()) return std::string_view();  // several: it is not known which
      found = name;
    }
    return found;
  };
  const std::string_view measured = named_in(source), planned = named_in(hardware);
  if (measured.empty() || planned.empty() || measured == planned) return {};
  return fmt::format("computation is as on {}, and the profile is of {} (give `compute_time`): ",
                     measured, planned);
}

Verdict judge(const Problem& problem, const casync::Plan& plan, const Comparison& comparison) {
  if (!comparison.planned_s) {
    const std::string why = comparison.not_simulated.empty()
                                ? "this plan's graph is too large to be simulated"
                                : comparison.not_simulated;
    return {.answer = Answer::kTooClose, .sentence = "too close to call: " + why};
  }
  Verdict verdict = compresses(problem.model, plan) ? with_compression(problem, plan, comparison)
                                                    : without_compression(problem, comparison);
  if (verdict.answer != Answer::kCompress) {
    verdict = compress_elsewhere(problem, comparison).value_or(verdict);
  }
  doubt_times(comparison, verdict);
  verdict.sentence += about_ddp(problem, comparison);
  return verdict;
}

}  // namespace hipress::planner
