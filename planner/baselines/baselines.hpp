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

/// All baselines: those with one rule for all gradients (rules/alone.hpp), greedy, PyTorch's DDP
/// (ddp, ddp_fp16, ddp_powersgd), baselines with bulk groups, and those of sharded jobs.
std::span<const BaselineRow> all_baselines();

/// Baselines of sharded jobs: FSDP2 and FSDP1 with their defaults and in bf16, HSDP, ZeRO++
/// (baselines/sharded.cpp). Adding one is one row. Their problem must be a GpuProblem's.
std::span<const BaselineRow> sharded_baselines();

/// The row with that name, or null.
const BaselineRow* find_baseline(std::string_view name);

/// Topologies to try for a baseline. With "best", a baseline without compression may also take the
/// library's all-reduce. Empty if no topology of the problem can carry the baseline, or if the
/// profile has no costs of the baseline's own algorithm.
std::vector<std::string> topologies_of(const Problem& problem, const BaselineRow& baseline);

struct Baseline {
  std::string_view name;
  casync::Plan plan;
  std::optional<double> iteration_s;  ///< unset: impossible, or the graph is too large
  std::string diagnostic;             ///< approximations made in the simulation; mostly empty
  /// Transfer order of the simulation.
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  /// Response of that time to uncertain inputs; unset: not requested.
  std::optional<sim::Response> response = {};
  StateMemory memory = {};  ///< state memory of a GPU

  const BaselineRow& row() const { return *find_baseline(name); }
};

/// Simulates a baseline with its best topology.
Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines);

/// Order in which to simulate the baselines. Those with groups and DDP's come first, since they
/// decide the verdict and are cheap. Baselines that send each gradient alone take longer, and may
/// use up the budget; among them, those with the fewest `tasks` come first.
std::vector<std::size_t> simulation_order(std::span<const BaselineRow* const> rows,
                                          std::span<const double> tasks);

/// True for baselines that send each gradient as its own message; their graphs are large.
bool sends_alone(const BaselineRow& row);

enum class Extent : std::uint8_t {
  kAll,
  kCheap,  ///< the one that the job runs today, and those that do not send each gradient alone
};

/// Simulates every baseline for the problem's kind of job, Limits::jobs at a time, each with its
/// best topology. The result is in the order of all_baselines(). It leaves out those that have no
/// plan here, and low-rank ones if the profile lacks their costs or GPUs cannot be nodes.
std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines,
                                         Extent extent = Extent::kAll);

/// Selects baselines by may_be_plan().
enum class Allowance : std::uint8_t { kAllowed, kForbidden };
/// True if a baseline's plan could be the problem's answer: it fits in memory, has the problem's
/// schedule, algorithms and topology, and has groups only if the problem allows them.
bool may_be_plan(const Problem& problem, const casync::Plan& plan);

/// Fastest baseline that takes less than `planned_s`; null if there is no such baseline.
const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance = Allowance::kAllowed);

}  // namespace hipress::planner
