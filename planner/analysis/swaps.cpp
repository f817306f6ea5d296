#include "planner/analysis/swaps.hpp"

namespace hipress::planner {
namespace {

// Limit on the tasks of all simulations together, on the requested network.
constexpr double kMaxTasksOfSwaps = 3e6;

}  // namespace

Swaps::Swaps(Workbench& bench, const Problem& problem, const TimedPlan& plan, std::size_t swaps)
    : bench_(bench), iteration_s_(plan.iteration_s) {
  base_ = bench_.estimate_base(bench_.plan());
  estimated_ =
      !bench_.estimates_are_exact() &&
      simulated_tasks(problem.model, plan.plan, *problem.machines) * static_cast<double>(swaps) >
          kMaxTasksOfSwaps;
}

std::optional<double> Swaps::cost_s(std::size_t g, std::uint16_t option) {
  Candidate swapped = bench_.plan();
  swapped.options[g] = option;
  if (estimated_ || bench_.estimates_are_exact()) {
    return casync::to_seconds(casync::Picoseconds(bench_.estimate(swapped) - base_));
  }
  const std::optional<double> time_s = bench_.time_s(swapped);
  if (!time_s) return std::nullopt;
  return *time_s - iteration_s_;
}

std::optional<std::uint16_t> Swaps::runner_up(std::size_t g, Membership membership) {
  const std::vector<casync::Decision>& options = bench_.choices().gradients[g];
  Candidate swapped = bench_.plan();
  const std::uint16_t chosen = swapped.options[g];
  std::optional<std::uint16_t> best;
  std::int64_t best_time = kNever;
  for (std::uint16_t i = 0; i < options.size(); ++i) {
    if (i == chosen) continue;
    const bool same_algorithm = options[i].algorithm == options[chosen].algorithm;
    if (membership == Membership::kInGroup && same_algorithm) continue;
    if (same_algorithm && bench_.same_in_plan(g, i, chosen)) continue;
    swapped.options[g] = i;
    const std::int64_t time =
        bench_.estimate(swapped, best_time == kNever ? kNever : best_time - 1);
    if (time == kNever) continue;
    best = i;
    best_time = time;
  }
  return best;
}

}  // namespace hipress::planner
