#include <algorithm>

#include "planner/search/passes/free_changes.hpp"

namespace hipress::planner {
namespace {

/// Options with the same algorithm and a smaller K, the smallest K first.
std::vector<std::uint16_t> coarser_cut(const Workbench& bench, std::size_t g,
                                       std::uint16_t option) {
  const std::vector<casync::Decision>& options = bench.choices().gradients[g];
  std::vector<std::uint16_t> found;
  for (std::uint16_t i = 0; i < options.size(); ++i) {
    if (options[i].algorithm == options[option].algorithm &&
        options[i].partitions < options[option].partitions) {
      found.push_back(i);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](std::uint16_t a, std::uint16_t b) {
    return options[a].partitions < options[b].partitions;
  });
  return found;
}

}  // namespace

TimedPlan fewer_partitions(const PassContext& context, const TimedPlan& plan) {
  return change_within(context.ceiling(plan, false), context, plan, coarser_cut);
}

}  // namespace hipress::planner
