#include <algorithm>
#include <optional>
#include <utility>

#include "planner/search/passes/free_changes.hpp"

namespace hipress::planner {
namespace {

/// Options with a smaller loss, the smallest first; of equals, those with the same K first.
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

/// Makes gradients raw one by one, as long as the ceiling allows it. This finds changes that were
/// missed by estimates, or by trying several changes at once.
class RawOneByOne {
 public:
  RawOneByOne(const Ceiling& ceiling, const PassContext& context, const TimedPlan& plan)
      : ceiling_(ceiling),
        context_(context),
        bench_(context.problem, plan),
        current_(bench_.plan()),
        plan_(plan) {}

  TimedPlan run() {
    bool again = true;
    while (again) {
      again = false;
      for (std::size_t g = 0; g < current_.options.size(); ++g) again = make_raw(g) || again;
    }
    return plan_;
  }

 private:
  bool make_raw(std::size_t g) {
    const std::uint16_t before = current_.options[g];
    if (bench_.coarseness_of(g, before).place == 0) return false;
    for (const std::uint16_t option : finer(bench_, g, before)) {
      if (bench_.coarseness_of(g, option).place > 0) break;
      if (context_.over()) break;
      current_.options[g] = option;
      if (std::optional<TimedPlan> fits = fitting(ceiling_, context_, bench_, current_)) {
        plan_ = std::move(*fits);
        return true;
      }
    }
    current_.options[g] = before;
    return false;
  }

  const Ceiling& ceiling_;
  const PassContext& context_;
  Workbench bench_;
  Candidate current_;
  TimedPlan plan_;
};

}  // namespace

TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan) {
  const Ceiling ceiling = context.ceiling(plan, true);
  const TimedPlan* const uncompressed = context.rivals.uncompressed;
  if (uncompressed && is_within(ceiling, *uncompressed)) return *uncompressed;
  const TimedPlan finer_plan = change_within(ceiling, context, plan, finer);
  return RawOneByOne(ceiling, context, finer_plan).run();
}

}  // namespace hipress::planner
