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

/// All baselines: those decided per gradient (rules/alone.hpp), greedy, PyTorch's DDP (ddp,
/// ddp_fp16, ddp_powersgd), the grouped forms, and those of sharded jobs.
std::span<const BaselineRow> all_baselines();

/// FSDP2 and FSDP1 with their defaults and in bf16, HSDP, ZeRO++ (baselines/sharded.cpp); adding
/// one is one row. Problems are GpuProblems.
std::span<const BaselineRow> sharded_baselines();

/// The row with that name, or null.
const BaselineRow* find_baseline(std::string_view name);

/// Candidate topologies for a baseline. With "best", a baseline without compression may take the
/// library's all-reduce too. Empty if the problem's topology cannot carry compressed gradients, or
/// if the profile lacks the baseline's own algorithm.
std::vector<std::string> topologies_of(const Problem& problem, const BaselineRow& baseline);

struct Baseline {
  std::string_view name;
  casync::Plan plan;
  std::optional<double> iteration_s;  ///< none: impossible, or too large a graph
  std::string diagnostic;             ///< approximations of the simulation; mostly empty
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;  ///< order simulated with
  std::optional<sim::Response> response = {};  ///< response of that time; none: not requested
  StateMemory memory = {};                     ///< state memory of a GPU

  const BaselineRow& row() const { return *find_baseline(name); }
};

/// Simulates a baseline with its best topology.
Baseline simulate_baseline(const BaselineRow& row, const Problem& problem,
                           const Machines& machines);

/// Order of simulation. Grouped baselines and DDP's come first: they decide the verdict and are
/// cheap. One message per gradient takes longer, and may use up the budget; of these, the fewest
/// `tasks` come first.
std::vector<std::size_t> simulation_order(std::span<const BaselineRow* const> rows,
                                          std::span<const double> tasks);

/// True for baselines that send each gradient alone, whose graphs are large.
bool sends_alone(const BaselineRow& row);

enum class Extent : std::uint8_t {
  kAll,
  kCheap,  ///< those that the job runs today, or that do not send each gradient alone
};

/// Simulates every baseline for the problem's kind of job, in the order of all_baselines(),
/// Limits::jobs at a time, each with its best topology. Left out are baselines without a plan here,
/// and those of low rank if the profile lacks their costs or nodes have several GPUs.
std::vector<Baseline> simulate_baselines(const Problem& problem, const Machines& machines,
                                         Extent extent = Extent::kAll);

/// Baselines to consider: those that may_be_plan(), or the others.
enum class Allowance : std::uint8_t { kAllowed, kForbidden };
/// True if a baseline could be the plan: it uses only the problem's algorithms and topology, and
/// has groups only if the plan may.
bool may_be_plan(const Problem& problem, const casync::Plan& plan);

/// Fastest baseline that takes less than `planned_s`; null if there is no such baseline.
const Baseline* faster_baseline(const Problem& problem, const std::vector<Baseline>& baselines,
                                double planned_s, Allowance allowance = Allowance::kAllowed);

}  // namespace hipress::planner
