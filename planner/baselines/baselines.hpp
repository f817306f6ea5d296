#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/problem/problem.hpp"
#include "planner/problem/state_memory.hpp"
#include "planner/rules/alone.hpp"
#include "planner/timing/evaluation.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {

/// Those that are decided alone (rules/alone.hpp), greedy, what PyTorch's DDP does (ddp, ddp_fp16,
/// ddp_powersgd), the grouped forms, and those of sharded jobs.
std::span<const BaselineRow> all_baselines();

/// FSDP2 and FSDP1 as they come and in bf16, HSDP, ZeRO++ (baselines/sharded.cpp): adding one is
/// one row. Problems are GpuProblems.
std::span<const BaselineRow> sharded_baselines();

/// The row with that name, or null.
const BaselineRow* find_baseline(std::string_view name);

/// The topologies that the problem leaves for that baseline: with "best", the library's all-reduce
/// too where it compresses nothing; none where the problem's carries nothing compressed, or the
/// profile lacks the baseline's own algorithm.
std::vector<std::string> topologies_of(const Problem& problem, const BaselineRow& baseline);

struct Baseline {
  std::string_view name;
  casync::Plan plan;
  std::optional<double> iteration_s;  ///< none: impossible, or its graph is too large to simulate
  std::string diagnostic;             ///< what was given up to simulate it; mostly empty
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;  ///< that it was simulated with
  std::optional<sim::Response> response = {};  ///< of that time; none: not asked for
  StateMemory memory = {};                     ///< of a GPU

  const BaselineRow& row() const { return *find_baseline(name); }
};

/// One baseline with the topology that is best for it, and its simulated iteration time.
Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines);

/// In which order these are simulated: first what decides a verdict and takes little, what is
/// grouped and DDP's. A message for every gradient takes longer, and may use up what there is: of
/// these, those with the fewest `tasks` come first.
std::vector<std::size_t> simulation_order(std::span<const BaselineRow* const> rows,
                                          std::span<const double> tasks);

/// Every baseline for the problem's kind of job with its simulated iteration time, in the order of
/// all_baselines(), but those that make no plan here, and those of low rank where the profile lacks
/// its costs or nodes have several GPUs. With several topologies to choose from, each as it is
/// best. Limits::jobs at a time.
std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines);

/// Whether a baseline could be the plan: it compresses with the problem's algorithms alone, goes by
/// its topology, and has groups only where the plan may.
enum class Allowance : std::uint8_t { kAllowed, kForbidden };
bool may_be_plan(const Problem& problem, const casync::Plan& plan);

/// The fastest of these baselines that is faster than `planned_s`; null if there is none.
const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance = Allowance::kAllowed);

}  // namespace hipress::planner
