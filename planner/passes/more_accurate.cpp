#include <algorithm>

#include "planner/passes/free_changes.hpp"

namespace hipress::planner {
namespace {

/// Options that give up less: the least first, and of these, those with the same K.
std::vector<std::uint16_t> finer(const Workbench& bench, std::size_t g, std::uint16_t option) {
  const std::vector<casync::Decision>& options = bench.choices().gradients[g];
  const auto rank = [&](std::uint16_t i) {
    return std::pair(bench.coarseness_of(g, i),
                     options[i].partitions != options[option].partitions);
  };
  std::vector<std::uint16_t> found;
  for (std::uint16_t i = 0; i < options.size(); ++i) {
    if (bench.coarseness_of(g, i) < bench.coarseness_of(g, option)) found.push_back(i);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](std::uint16_t a, std::uint16_t b) { return rank(a) < rank(b); });
  return found;
}

}  // namespace

TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan) {
  return change_for_free(context, plan, finer);
}

}  // namespace hipress::planner
