#include "planner/analysis/sharded_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "io/quantity.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

template <class Condition>
const ShardedBaseline* fastest(const ShardedComparison& comparison, Condition condition) {
  const ShardedBaseline* best = nullptr;
  for (const ShardedBaseline& one : comparison.baselines) {
    if (!one.found || one.found->memory.total() > comparison.memory_bytes) continue;
    if (!condition(*one.row)) continue;
    if (best == nullptr || one.found->iteration_s < best->found->iteration_s) best = &one;
  }
  return best;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string sure(double probability) {
  return fmt::format("{:.0f} % sure", 100 * std::min(probability, 0.99));
}

class Judge {
 public:
  Judge(const Problem& problem, const ShardedComparison& comparison)
      : problem_(problem), comparison_(comparison), plan_(comparison.plan) {}

  Verdict verdict() const {
    bool beside_uncompressed = plan_.compressed > 0;  // whether the sentence names the fastest
    Verdict made = beside_uncompressed ? with_compression() : without_compression();
    if (beside_uncompressed && casts_alone() && made.answer != Answer::kDoNotCompress) {
      beside_uncompressed = false;  // a cast is no compression that could be advised
      made = without_compression();
    }
    doubt_times(made);
    const bool names_rival = !beside_uncompressed && made.answer == Answer::kCompress;
    made.sentence +=
        about_default(beside_uncompressed) + about_others(names_rival, beside_uncompressed);
    return made;
  }

 private:
  /// Doubts a verdict by the plan, the fastest without compression and the fastest with it.
  void doubt_times(Verdict& verdict) const {
    std::string times = plan_and_time();
    std::optional<sim::Response> planned = plan_.response, rival, compressing;
    if (const ShardedBaseline* const raw = comparison_.fastest_uncompressed()) {
      rival = raw->found->response;
      times += fmt::format(", {} {}", raw->row->title, time_of(*raw->found));
    }
    if (const auto* const best = best_compressing()) compressing = best->found->response;
    doubt({&planned, &rival, &compressing}, comparison_.spread, times, verdict);
  }

  /// Whether it compresses nothing beyond half precision, which jobs compute in.
  bool casts_alone() const {
    const std::vector<std::string> used = plans::used_algorithms(problem_.model, plan_.plan);
    return !used.empty() && std::ranges::all_of(used, plans::is_cast);
  }

  std::string time_of(const ScheduledPlan& plan) const {
    return with_interval(plan.iteration_s, plan.response, comparison_.spread);
  }

  std::string plan_and_time() const {
    return plan_.plan.schedule.text() + " takes " + time_of(plan_) + " a step";
  }

  sim::Saving saving(const ScheduledPlan& first, const ScheduledPlan& second,
                     double margin = 0) const {
    return sim::saving(first.response, second.response, comparison_.spread, margin);
  }

  /// "saves 50ms of 150ms (33.3 %, 30 to 36) over HSDP".
  std::string what_it_saves(const ShardedBaseline& rival) const {
    const double rival_s = rival.found->iteration_s;
    const sim::Saving range = saving(plan_, *rival.found);
    return fmt::format("saves {} of {} ({}, {:.0f} to {:.0f}) over {}",
                       io::format_duration(rival_s - plan_.iteration_s),
                       io::format_duration(rival_s), percent(1 - plan_.iteration_s / rival_s),
                       100 * range.p10, 100 * range.p90, rival.row->title);
  }

  Verdict with_compression() const {
    const ShardedBaseline* const rival = comparison_.fastest_uncompressed();
    if (rival == nullptr) {
      const bool found = any_found([](const ShardedBaselineRow& row) { return !row.compresses; });
      return {.answer = Answer::kTooClose,
              .sentence = "too close to call: " + plan_and_time() +
                          (found ? "; nothing without compression fits into `gpu_memory`"
                                 : "; nothing without compression could be simulated")};
    }
    const double saved = 1 - plan_.iteration_s / rival->found->iteration_s;
    const double probability = saving(plan_, *rival->found).probability;
    if (saved > problem_.tolerance && probability >= kSure) {
      return {Answer::kCompress, probability,
              fmt::format("compress ({}): {}; {}", sure(probability), plan_and_time(),
                          what_it_saves(*rival))};
    }
    const std::string both =
        fmt::format("{} takes {}, this plan, {}, {}", rival->row->title, time_of(*rival->found),
                    plan_.plan.schedule.text(), time_of(plan_));
    if (saved > problem_.tolerance) {
      return {Answer::kTooClose, probability,
              fmt::format("too close to call: {} ({} saved; compression is faster with {:.0f} % "
                          "probability)",
                          both, percent(saved), 100 * probability)};
    }
    const double worth = saving(plan_, *rival->found, problem_.tolerance).probability;
    std::string why = "as long";
    if (saved < 0) why = percent(-saved) + " longer";
    if (saved > 0) {
      why = fmt::format("saving {} is not worth its loss (tolerance {})", percent(saved),
                        percent(problem_.tolerance));
    }
    return {Answer::kDoNotCompress, 1 - worth, fmt::format("do not compress: {}: {}", both, why)};
  }

  const ShardedBaseline* best_compressing() const {
    return fastest(comparison_, [](const ShardedBaselineRow& row) { return row.compresses; });
  }

  Verdict without_compression() const {
    const ShardedBaseline* const best = best_compressing();
    if (best == nullptr) return {Answer::kDoNotCompress, {}, "do not compress: " + plan_and_time()};
    double probability = saving(*best->found, plan_, problem_.tolerance).probability;
    bool pays = best->found->iteration_s < plan_.iteration_s * (1 - problem_.tolerance);
    if (const ShardedBaseline* const rival = comparison_.fastest_uncompressed()) {
      const double limit_s = rival->found->iteration_s * (1 - problem_.tolerance);
      pays = pays && best->found->iteration_s < limit_s;
      probability = std::min(probability,
                             saving(*best->found, *rival->found, problem_.tolerance).probability);
    }
    if (!pays || probability < kSure) {
      return {Answer::kDoNotCompress, 1 - probability, "do not compress: " + plan_and_time()};
    }
    return {Answer::kCompress, probability,
            fmt::format("compress, but otherwise ({}): {} takes {} a step, this plan, {}, {} (give "
                        "`schedule` {} and `algorithm` {})",
                        sure(probability), best->row->title, time_of(*best->found),
                        plan_.plan.schedule.text(), time_of(plan_),
                        best->found->plan.schedule.text(), algorithms_of(best->found->plan))};
  }

  static std::string algorithms_of(const casync::Plan& plan) {
    std::string names;
    for (const casync::Algorithm& one : plan.algorithms) {
      names += (names.empty() ? "" : ",") + one.name;
    }
    return names;
  }

  /// Whether one of those rows was simulated, whether it fits or not.
  template <class Which>
  bool any_found(const Which& which) const {
    return std::ranges::any_of(comparison_.baselines, [&](const ShardedBaseline& one) {
      return one.found.has_value() && which(*one.row);
    });
  }

  /// What the plan saves of PyTorch's defaults, unless that is said.
  std::string about_default(bool beside_uncompressed) const {
    const ShardedBaseline* const best = comparison_.fastest_default();
    if (best == nullptr) {
      return any_found([](const ShardedBaselineRow& row) { return row.is_default; })
                 ? "; FSDP2 by default does not fit into `gpu_memory`"
                 : "";
    }
    if (beside_uncompressed && best == comparison_.fastest_uncompressed()) return "";
    const double saved = 1 - plan_.iteration_s / best->found->iteration_s;
    const std::string time = io::format_duration(best->found->iteration_s);
    if (std::abs(saved) <= problem_.tolerance) {
      return fmt::format("; {} takes as long", best->row->title);
    }
    if (saved < 0) return fmt::format("; {} takes {}, less than this plan", best->row->title, time);
    const auto is_wide = [&](const ScheduledPlan& plan) {
      return sim::too_uncertain(sim::interval(plan.response, comparison_.spread));
    };
    return fmt::format("; it {} ({})", what_it_saves(*best),
                       is_wide(plan_) || is_wide(*best->found)
                           ? "too uncertain"
                           : sure(saving(plan_, *best->found).probability));
  }

  /// Whether it takes less than the plan, by more than the tolerance.
  bool is_faster(const ShardedBaseline& one) const {
    return one.found->iteration_s < plan_.iteration_s * (1 - problem_.tolerance);
  }

  /// "; ZeRO++ takes 180ms, less than this plan", of those that the sentence does not name.
  std::string about_others(bool names_rival, bool beside_uncompressed) const {
    std::string text;
    const ShardedBaseline* const named = names_rival ? best_compressing() : nullptr;
    const ShardedBaseline* const rival = comparison_.fastest_uncompressed();
    for (const ShardedBaseline& one : comparison_.baselines) {
      const std::string_view name = one.row->name;
      const bool beats = &one == rival && !one.row->is_default && one.found && is_faster(one);
      if (!one.found || &one == named || (name != "zeropp" && name != "hsdp" && !beats)) continue;
      if (&one == rival && beside_uncompressed) continue;
      text +=
          fmt::format("; {} takes {}", one.row->title, io::format_duration(one.found->iteration_s));
      if (one.found->memory.total() > comparison_.memory_bytes) {
        text += " and does not fit";
      } else if (is_faster(one)) {
        text += ", less than this plan";
      }
    }
    return text;
  }

  const Problem& problem_;
  const ShardedComparison& comparison_;
  const ScheduledPlan& plan_;
};

}  // namespace

const ShardedBaseline* ShardedComparison::fastest_default() const {
  return fastest(*this, [](const ShardedBaselineRow& row) { return row.is_default; });
}

const ShardedBaseline* ShardedComparison::fastest_uncompressed() const {
  return fastest(*this, [](const ShardedBaselineRow& row) { return !row.compresses; });
}

Verdict judge_shards(const Problem& problem, const ShardedComparison& comparison) {
  return Judge(problem, comparison).verdict();
}

}  // namespace hipress::planner
