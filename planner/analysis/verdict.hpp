#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/time_options.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// A plan to compare with.
struct Contender {
  std::string name;  ///< name of a baseline; empty: from a search
  TimedPlan plan;
  const Machines* machines = nullptr;          ///< machines that it was simulated on
  std::optional<sim::Response> response = {};  ///< unset: the budget left no time for it
};

/// Simulated iteration times of the plan and its rivals.
struct Comparison {
  std::optional<double> planned_s;  ///< unset: the graph is too large, or see `not_simulated`
  /// Time of the fastest plan found, before the advice not to compress could replace it.
  std::optional<double> least_found_s = {};
  std::string not_simulated = {};  ///< reason why nothing was simulated; else empty
  std::optional<sim::Response> planned = {};
  std::vector<Baseline> baselines;
  /// Fastest known plan without compression that a framework runs or that may_be_plan() allows.
  std::optional<Contender> uncompressed = {};
  /// Fastest compressing baseline with allowed algorithms, but with other topology or groups.
  std::optional<Contender> elsewhere = {};
  /// Like `uncompressed`, but without plans that only a framework runs: the fastest plan without
  /// compression that may_be_plan() allows.
  std::optional<TimedPlan> raw = {};
  std::optional<Contender> compressed = {};  ///< fastest known plan with compression
  costs::Spread spread = {};
  /// If DDP's all-reduce was not measured: a note on what its times rest on; else empty.
  std::string all_reduce_diagnostic = {};
  std::optional<double> lower_bound_s = {};  ///< lower bound for the search's option set
  /// Steps of the plan relative to DDP's, if all times were multiplied by their plans' ratios;
  /// unset: times are those of one step.
  std::optional<StepsRatio> steps = {};
  /// Baseline that the job runs today; null: not simulated.
  const Baseline* today(const Problem& problem) const;
  /// Largest possible excess of the plan's time over lower_bound_s, relative to the bound.
  std::optional<double> gap() const;
};

/// Multiplies every time by its plan's steps relative to DDP's (Problem::learning): the product is
/// the time for the progress of one DDP step. Returns `comparison` unchanged without a pilot, or if
/// the pilot does not know the plan. Baselines with an unknown ratio lose their time.
Comparison by_progress(const Problem& problem, const casync::Plan& plan, Comparison comparison);

enum class Answer : std::uint8_t { kCompress, kDoNotCompress, kTooClose, kTooUncertain };
/// Text of an answer: "compress", "do not compress", "too close to call", "too uncertain".
const char* to_string(Answer answer);

/// Answer to the question whether to compress, with its probability and as a sentence.
struct Verdict {
  Answer answer = Answer::kTooClose;
  /// Probability that the answer is right: that compression is faster or, for the advice not to
  /// compress, that it saves no more than Problem::tolerance. Unset if unknown: the budget left no
  /// time for intervals, they are too wide, or there is no rival.
  std::optional<double> probability = {};
  std::string sentence;  ///< one line: the advice, times with intervals, and what DDP takes
};

/// Least probability for an answer other than kTooClose.
inline constexpr double kSure = 0.9;

/// Judges a plan; `times` holds its time and its rivals'. Compression loses accuracy, so it must
/// save enough. It is advised if a compressing plan (this one, or a baseline that is `elsewhere`)
/// beats the best plan without compression by more than the tolerance, and beats what the job runs
/// today with a probability of at least kSure and a saving whose 10th percentile is above zero. It
/// is advised against if it saves no more than Problem::tolerance. If a deciding interval is too
/// wide (sim::too_uncertain()), there is no advice. Baselines that do not fit into
/// Problem::memory_bytes do not count as rivals. The sentence gives the saving over what the job
/// runs today, and any faster row that a framework runs as it is. Times are compared by_progress().
Verdict judge(const Problem& problem, const casync::Plan& plan, const Comparison& times);

/// Replaces a verdict that rests on intervals by "too uncertain" if an interval of `compared` is
/// too wide. `times` describes the compared times in words. Missing responses raise no doubt.
void doubt(std::initializer_list<const std::optional<sim::Response>*> compared,
           const costs::Spread& spread, const std::string& times, Verdict& verdict);

/// Qualifies a verdict to compress if model times are missing. Without ready times, the saving
/// could be anything from nothing to that with all communication exposed, so the answer becomes
/// kTooClose. A verdict against compression stands: hidden communication saves nothing.
void weaken(models::MissingTimes missing, Verdict& verdict, const Comparison& comparison);

/// Warning that the model's times were measured on other GPUs than the profile: "computation was
/// timed on V100, and the profile is of A100 …". `source` and `hardware` describe these GPUs. Empty
/// if one of the texts names none, or if they agree.
std::string other_hardware(std::string_view source, std::string_view hardware);

/// Clause on learning, for a comparison by_progress(): "reaches the loss that DDP has after 400
/// steps in 412 (404 to 425), 2.1 times as soon as PyTorch DDP (1.8 to 2.3); ". Without a ratio,
/// the clause says that learning was not measured, if the plan's algorithms are coarser than those
/// known to learn as DDP does; otherwise it is empty.
std::string about_learning(const Problem& problem, const casync::Plan& plan,
                           const Comparison& comparison);

/// Clause on what the plan compresses, and where that costs most accuracy: "onebit (1 bit a value)
/// for 12 of 38 gradients, the embedding (tok.weight) among them".
std::string what_is_compressed(const Problem& problem, const casync::Plan& plan);

/// True if the plan compresses anything. Sending half-precision gradients in their own type does
/// not count. Sharded jobs compute in half precision, so no cast counts as compression there.
bool compresses(const models::Model& model, const casync::Plan& plan);

/// Time with its 10–90 % interval, if that is known: "121ms (110ms to 133ms)".
std::string with_interval(double time_s, const std::optional<sim::Response>& response,
                          const costs::Spread& spread);

}  // namespace hipress::planner
