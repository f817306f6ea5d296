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
  const Machines* machines = nullptr;          ///< machines it is for
  std::optional<sim::Response> response = {};  ///< none: no budget was left
};

/// Simulated iteration times of the plan and its rivals.
struct Comparison {
  std::optional<double> planned_s;           ///< none: too large a graph, or `not_simulated`
  std::optional<double> least_found_s = {};  ///< the fastest plan found, which the advice not to
                                             ///< compress may replace
  std::string not_simulated = {};            ///< reason why nothing was simulated; else empty
  std::optional<sim::Response> planned = {};
  std::vector<Baseline> baselines;
  /// Fastest known plan without compression among those that frameworks run or that may be the
  /// plan.
  std::optional<Contender> uncompressed = {};
  /// Fastest compressing baseline whose algorithms are allowed, but which the topology or the form
  /// of plan file excludes.
  std::optional<Contender> elsewhere = {};
  std::optional<TimedPlan> raw = {};         ///< fastest plan without compression that may be the
                                             ///< plan
  std::optional<Contender> compressed = {};  ///< fastest known with compression
  costs::Spread spread = {};
  /// Basis of DDP's times if its all-reduce was not measured: "taken as …"; else empty.
  std::string all_reduce_diagnostic = {};
  std::optional<double> lower_bound_s = {};  ///< lower bound for the search's option set
  /// Steps of the plan relative to DDP's, if times are multiplied by them; none: times of one step.
  std::optional<StepsRatio> steps = {};
  /// Baseline that the job runs today; null: not simulated.
  const Baseline* today(const Problem& problem) const;
  /// Largest possible relative excess of the plan over lower_bound_s.
  std::optional<double> gap() const;
};

/// Multiplies every time by its plan's steps relative to DDP's (Problem::learning), which gives the
/// time of DDP's progress in one step. Unchanged without a pilot, or if the pilot does not know the
/// plan. Baselines with an unknown ratio lose their time.
Comparison by_progress(const Problem& problem, const casync::Plan& plan, Comparison comparison);

enum class Answer : std::uint8_t { kCompress, kDoNotCompress, kTooClose, kTooUncertain };
/// Text of an answer: "compress", "do not compress", "too close to call", "too uncertain".
const char* to_string(Answer answer);

/// Answer to the question of whether to compress, in one sentence.
struct Verdict {
  Answer answer = Answer::kTooClose;
  /// Probability that compression is faster; for the advice not to compress, that it saves no more
  /// than Problem::tolerance. None if unknown: no time for intervals, too wide ones, or no rival.
  std::optional<double> probability = {};
  std::string sentence;  ///< one line: the advice, times with intervals, and what DDP takes
};

/// Least probability with which the answer is not kTooClose.
inline constexpr double kSure = 0.9;

/// Judges a plan; `times` holds its time and its rivals'. Compression loses accuracy, so it must
/// save enough. It is advised if a compressing plan (this one, or a baseline that the problem does
/// not allow as its answer) beats the best plan without compression by more than the tolerance, and
/// beats what the job runs today with probability kSure and an interval above zero. It is advised
/// against if it saves no more than Problem::tolerance. If a deciding interval is too wide
/// (sim::too_uncertain()), there is no advice. Baselines that do not fit into Problem::memory_bytes
/// do not count as rivals. The sentence gives the saving over what the job runs today, and any
/// faster row that a framework runs as it is. Times are compared by_progress().
Verdict judge(const Problem& problem, const casync::Plan& plan, const Comparison& times);

/// Replaces a verdict that rests on intervals if one of these is too wide. `times` is the text of
/// the compared times; a missing response counts as no interval.
void doubt(std::initializer_list<const std::optional<sim::Response>*> compared,
           const costs::Spread& spread, const std::string& times, Verdict& verdict);

/// Adds missing model times to a verdict to compress. Without ready times the range is from fully
/// hidden to fully exposed communication, which decides nothing. A verdict against compression
/// stands: hidden communication saves nothing.
void weaken(models::MissingTimes missing, Verdict& verdict, const Comparison& comparison);

/// Warns if the model's times were measured on other GPUs than the profile's: "computation is as on
/// V100, …". `source` and `hardware` name these GPUs. Empty if one of the texts names none, or if
/// they agree.
std::string other_hardware(std::string_view source, std::string_view hardware);

/// Clause on learning for a comparison by_progress(): "reaches the loss that DDP has after 400
/// steps in 412 (404 to 425), 2.1 times as soon as PyTorch DDP (1.8 to 2.3); ". Without a ratio: a
/// note that learning was not measured, if the plan's algorithms are coarser than those known to
/// learn as DDP does; else empty.
std::string about_learning(const Problem& problem, const casync::Plan& plan,
                           const Comparison& comparison);

/// Clause on the plan's compression, and where it costs most accuracy: "onebit (1 bit a value) for
/// 12 of 38 gradients, the embedding (tok.weight) among them".
std::string what_is_compressed(const Problem& problem, const casync::Plan& plan);

/// True if the plan compresses anything beyond the casts of half-precision gradients. Sharded jobs
/// compute in half precision, so casts do not count as compression there.
bool compresses(const models::Model& model, const casync::Plan& plan);

/// Time with its 10–90 % interval, if that is known: "121ms (110ms to 133ms)".
std::string with_interval(double time_s, const std::optional<sim::Response>& response,
                          const costs::Spread& spread);

}  // namespace hipress::planner
