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

/// Something that a plan is compared with.
struct Contender {
  std::string name;  ///< of a baseline; empty: it was searched
  TimedPlan plan;
  const Machines* machines = nullptr;          ///< that it is for
  std::optional<sim::Response> response = {};  ///< none: the budget left no time for it
};

/// Simulated iteration times of the plan and of what it is compared with.
struct Comparison {
  std::optional<double> planned_s;           ///< none: its graph is too large, or `not_simulated`
  std::optional<double> least_found_s = {};  ///< before the advice not to compress was taken
  std::string not_simulated = {};            ///< why nothing was; else empty
  std::optional<sim::Response> planned = {};
  std::vector<Baseline> baselines;
  /// The fastest plan known without compression, of those that frameworks run or that may be the
  /// plan.
  std::optional<Contender> uncompressed = {};
  /// The fastest compressing baseline that the algorithms allow and the topology or the kind of
  /// plan file does not.
  std::optional<Contender> elsewhere = {};
  std::optional<TimedPlan> raw = {};         ///< the fastest of those that may be the plan
  std::optional<Contender> compressed = {};  ///< the fastest known with compression
  costs::Spread spread = {};
  /// What DDP's times rest on where its all-reduce was not measured: "taken as …"; else empty.
  std::string all_reduce_diagnostic = {};
  std::optional<double> lower_bound_s = {};  ///< of the plans that the search chose from
  /// Steps of the plan over DDP's, where times are those of as many steps; none: of one step.
  std::optional<StepsRatio> steps = {};
  /// The baseline that the job runs today; null: none was simulated.
  const Baseline* today(const Problem& problem) const;
  /// No plan that the search could have returned takes less time than this one.
  bool proved_optimal = false;
  /// How far from the best of them the plan can be at most.
  std::optional<double> gap() const;
};

/// The comparison with every time multiplied by its plan's steps over DDP's (Problem::learning):
/// the time of what DDP learns in one step. As it is without a pilot, or where the pilot does not
/// know the plan. Baselines whose ratio is not known have no time then.
Comparison by_progress(const Problem& problem, const casync::Plan& plan, Comparison comparison);

enum class Answer : std::uint8_t { kCompress, kDoNotCompress, kTooClose, kTooUncertain };
/// "compress", "do not compress", "too close to call", "too uncertain".
const char* to_string(Answer answer);

/// Whether to compress.
struct Verdict {
  Answer answer = Answer::kTooClose;
  /// Probability that compression is faster; with the advice not to compress, that compression
  /// saves no more than Problem::tolerance. None: it is not known, since there was no time for
  /// intervals, they are too wide, or there was nothing to compare.
  std::optional<double> probability = {};
  std::string sentence;  ///< one line: the advice, times with intervals, and what DDP takes
};

/// From this probability on, the advice is no longer that it is too close to call.
inline constexpr double kSure = 0.9;

/// The verdict on a plan, whose times and those of its rivals are in `times`. Compression
/// loses accuracy, so it must be worth that. It is advised if a plan that compresses (this one, or
/// a baseline that the problem does not allow as its answer) is faster than the best plan without
/// compression by more than the tolerance, and than what the job runs today with probability kSure
/// and an interval above zero. It is advised against if it saves no more than Problem::tolerance.
/// Where an interval that decides is too wide (sim::too_uncertain()), it advises nothing. Baselines
/// that do not fit into Problem::memory_bytes are no rivals. The sentence says what the plan saves
/// of what the job runs today, and which row that a framework runs as it is takes less.
/// Times are compared by_progress().
Verdict judge(const Problem& problem, const casync::Plan& plan, const Comparison& times);

/// Replaces a verdict that rests on intervals if one of these is too wide to decide by. `times` are
/// what was compared, in words; a missing response counts as none.
void doubt(std::initializer_list<const std::optional<sim::Response>*> compared,
           const costs::Spread& spread, const std::string& times, Verdict& verdict);

/// Makes a verdict to compress say first what is not known of the model's times: without ready
/// times a range, from all communication hidden behind computation to none, which decides nothing.
/// A verdict against compression stands: what is hidden saves nothing.
void weaken(models::MissingTimes missing, Verdict& verdict, const Comparison& comparison);

/// A warning where the model's times were measured on other GPUs than the profile's: "computation
/// is as on V100, …". `source` and `hardware` are the texts that name these GPUs. Empty where one
/// of the texts names none, or where both name the same.
std::string other_hardware(std::string_view source, std::string_view hardware);

/// "reaches the loss that DDP has after 400 steps in 412 (404 to 425), 2.1 times as soon as PyTorch
/// DDP (1.8 to 2.3); ": of a comparison by_progress(). Without a ratio, that learning was not
/// measured, if the plan's algorithms are coarser than what is known to learn as DDP does; else
/// empty.
std::string about_learning(const Problem& problem, const casync::Plan& plan,
                           const Comparison& comparison);

/// "onebit (1 bit a value) for 12 of 38 gradients, the embedding (tok.weight) among them": what the
/// plan compresses with, and where that costs most accuracy.
std::string what_is_compressed(const Problem& problem, const casync::Plan& plan);

/// True if the plan compresses anything beyond the casts of half-precision gradients. A sharded
/// job computes in half precision, so that casts are no compression there.
bool compresses(const models::Model& model, const casync::Plan& plan);

/// "121ms (110ms to 133ms)", with the 10–90 % interval where it is known.
std::string with_interval(double time_s, const std::optional<sim::Response>& response,
                          const costs::Spread& spread);

}  // namespace hipress::planner
