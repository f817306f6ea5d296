#include <algorithm>
#include <optional>

#include "planner/search/passes/free_changes.hpp"

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

/// Makes one gradient after the other raw where the limit allows it, until none is left: what
/// estimates, or changes of several at once, did not find.
class RawOneByOne {
 public:
  RawOneByOne(double limit_s, const PassContext& context, const TimedPlan& plan)
      : limit_s_(limit_s),
        context_(context),
        bench_(context.problem, plan),
        current_(bench_.plan()),
        iteration_s_(plan.iteration_s) {}

  TimedPlan run() {
    bool again = true;
    while (again) {
      again = false;
      for (std::size_t g = 0; g < current_.options.size(); ++g) again = make_raw(g) || again;
    }
    return bench_.timed(current_, iteration_s_);
  }

 private:
  bool make_raw(std::size_t g) {
    const std::uint16_t before = current_.options[g];
    if (bench_.coarseness_of(g, before).place == 0) return false;
    for (const std::uint16_t option : finer(bench_, g, before)) {
      if (bench_.coarseness_of(g, option).place > 0) break;
      if (context_.over()) break;
      current_.options[g] = option;
      context_.budget.count(1);
      const std::optional<double> time_s = bench_.time_s(current_);
      if (time_s && *time_s <= limit_s_) {
        iteration_s_ = *time_s;
        return true;
      }
    }
    current_.options[g] = before;
    return false;
  }

  const double limit_s_;
  const PassContext& context_;
  Workbench bench_;
  Candidate current_;
  double iteration_s_;
};

}  // namespace

TimedPlan more_accurate(const PassContext& context, const TimedPlan& plan) {
  const double limit_s = plan.iteration_s * (1 + context.problem.tolerance);
  if (context.uncompressed && context.uncompressed->iteration_s <= limit_s) {
    return *context.uncompressed;
  }
  const TimedPlan finer_plan = change_within(limit_s, context, plan, finer);
  return RawOneByOne(limit_s, context, finer_plan).run();
}

}  // namespace hipress::planner
