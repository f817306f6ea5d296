#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/evaluation.hpp"
#include "planner/search.hpp"

namespace hipress::planner {

/// A plan that needs no budget, which every searched plan is compared with. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  casync::Plan (*make)(const Problem& problem);
  bool compresses = true;  ///< else a strategy that sends_raw_alone() can carry it too
};

/// none, fp16, all, threshold_262144, secopa: those that nothing is simulated for.
std::span<const BaselineRow> baselines();

/// Whether a gradient is not fp32, so that a strategy that sends_raw_alone() cannot carry it.
bool has_half_precision(const models::Model& model);

/// The strategies that the problem leaves for that baseline: with "best", the library's all-reduce
/// too where it compresses nothing; none where the problem's carries nothing compressed.
std::vector<std::string> strategies_of(const Problem& problem, const BaselineRow& baseline);

struct Baseline {
  std::string_view name;
  casync::Plan plan;
  std::optional<double> iteration_s;  ///< none: impossible, or its graph is too large to simulate
  std::string remark;                 ///< what was given up to simulate it; mostly empty
};

/// Every baseline with its simulated iteration time, in the order of baselines(), and behind them
/// greedy. With several topologies to choose from, each as it is best. Limits::jobs at a time.
std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines);

/// Whether a baseline compresses with the problem's algorithms alone. Baseline fp16 may not.
enum class Allowance : std::uint8_t { kAllowed, kForbidden };

/// The fastest of these baselines that is faster than `planned_s`; null if there is none.
const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance = Allowance::kAllowed);

}  // namespace hipress::planner
