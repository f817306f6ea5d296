#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/timing/evaluation.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {

/// A plan that needs no budget, which every searched plan is compared with. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  casync::Plan (*make)(const Problem& problem);
  bool compresses = true;  ///< else a strategy that sends_raw_alone() can carry it too
  /// That it has whatever the problem's is; empty: the problem's.
  std::string_view strategy = {};
  /// As `make` decides, with the bulk groups that suit it best.
  bool grouped = false;
  /// That it compresses with whatever the problem's are; empty: with none but these.
  std::string_view algorithm = {};
  /// `make` simulates many plans.
  bool searches = false;

  /// A library's own, whose nodes are GPUs: as_collectives_see().
  bool is_collective() const { return !strategy.empty(); }
};

/// none, fp16, all, threshold_262144, secopa, each gradient alone: those that nothing is simulated
/// for, so that they are in every option set.
std::span<const BaselineRow> baselines();

/// Those, greedy, what PyTorch's DDP does (ddp, ddp_fp16, ddp_powersgd), and the grouped forms.
std::span<const BaselineRow> all_baselines();

/// The row with that name, or null.
const BaselineRow* find_baseline(std::string_view name);

/// Whether a gradient is not fp32, so that a strategy that sends_raw_alone() cannot carry it.
bool has_half_precision(const models::Model& model);

/// The strategies that the problem leaves for that baseline: with "best", the library's all-reduce
/// too where it compresses nothing; none where the problem's carries nothing compressed, or the
/// profile lacks the baseline's own algorithm.
std::vector<std::string> strategies_of(const Problem& problem, const BaselineRow& baseline);

struct Baseline {
  std::string_view name;
  casync::Plan plan;
  std::optional<double> iteration_s;  ///< none: impossible, or its graph is too large to simulate
  std::string diagnostic;             ///< what was given up to simulate it; mostly empty
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;  ///< that it was simulated with
  std::optional<sim::Response> response = {};  ///< of that time; none: not asked for
};

/// One baseline with the strategy that is best for it, and its simulated iteration time.
Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines);

/// In which order these are simulated: first what decides a verdict and takes little, what is
/// grouped and DDP's. A message for every gradient takes longer, and may use up what there is.
std::vector<std::size_t> simulation_order(std::span<const BaselineRow* const> rows);

/// Every baseline with its simulated iteration time, in the order of all_baselines(), but those of
/// low rank where the profile lacks its costs or nodes have several GPUs. With several
/// topologies to choose from, each as it is best. Limits::jobs at a time.
std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines);

/// Whether a baseline could be the plan: it compresses with the problem's algorithms alone, goes by
/// its topology, and has groups only where the plan may.
enum class Allowance : std::uint8_t { kAllowed, kForbidden };
bool may_be_plan(const Problem& problem, const casync::Plan& plan);

/// The fastest of these baselines that is faster than `planned_s`; null if there is none.
const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance = Allowance::kAllowed);

}  // namespace hipress::planner
