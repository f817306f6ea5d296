#include "planner/analysis/break_even.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "casync/strategy.hpp"
#include "costs/density.hpp"
#include "plans/plan_options.hpp"

namespace hipress::planner {
namespace {

constexpr double kLeastDensity = 1e-6;
constexpr int kBisections = 14;  // a factor of 1e6 to 0.1 %

class BreakEven {
 public:
  BreakEven(const Problem& problem, const TimedPlan& plan)
      : problem_(problem),
        context_{.model = problem.model, .nodes = plan.plan.nodes},
        given_{.plan = plan.plan, .codecs = {}, .transfer_order = plan.transfer_order},
        profile_(problem.machines->profile),
        machines_{.profile = profile_,
                  .cluster = problem.machines->cluster,
                  .network = problem.machines->network,
                  .memory_bytes = problem.machines->memory_bytes,
                  .budget = problem.machines->budget} {
    for (const casync::Algorithm& algorithm : plan.plan.algorithms) {
      given_.codecs.push_back(kernels::make_codec(algorithm.name));
    }
  }

  bool sends_sparse() const {
    return std::ranges::any_of(given_.plan.decisions, [&](const casync::Decision& decision) {
      return decision.algorithm != casync::kRaw &&
             given_.codecs[static_cast<std::size_t>(decision.algorithm)]->traits().sparse;
    });
  }

  std::optional<plans::DenseFallback> find() {
    std::optional<Dense> dense = fastest_dense();
    if (!dense) return std::nullopt;
    double low = kLeastDensity, high = 1;
    const std::optional<double> sparsest = seconds(low), fullest = seconds(high);
    if (!sparsest || !fullest) return std::nullopt;
    if (*sparsest >= dense->seconds || *fullest <= dense->seconds) return std::nullopt;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = std::sqrt(low * high);
      const std::optional<double> found = seconds(middle);
      if (!found) return std::nullopt;
      (*found <= dense->seconds ? low : high) = middle;
    }
    dense->how.above = low;
    return dense->how;
  }

 private:
  struct Dense {
    plans::DenseFallback how;
    double seconds = 0;
  };

  /// Of the plan at a density, or, with a fallback, dense.
  std::optional<double> seconds(double density,
                                const std::optional<plans::DenseFallback>& dense = {}) {
    plans::ResolvedPlan changed = given_;
    changed.dense = dense;
    plans::set_density(density, context_, changed);
    for (const casync::Algorithm& algorithm : changed.plan.algorithms) {
      costs::add_costs_of_density(profile_, algorithm.name);
    }
    return affordable_iteration(problem_.model, changed.plan, machines_, *given_.transfer_order)
        .iteration_s;
  }

  std::optional<Dense> fastest_dense() {
    std::vector<std::string> algorithms = {"none"};
    for (const std::string& algorithm : problem_.algorithms) {
      if (kernels::make_codec(algorithm)->traits().half_precision) algorithms.push_back(algorithm);
    }
    const auto nodes = static_cast<std::int32_t>(given_.plan.nodes);
    std::optional<Dense> best;
    for (const std::string& algorithm : algorithms) {
      for (const std::int32_t partitions : {nodes, 2 * nodes, 4 * nodes}) {
        const plans::DenseFallback how = {
            .above = 0, .algorithm = algorithm, .partitions = partitions};
        const std::optional<double> found = seconds(1, how);
        if (found && (!best || *found < best->seconds)) best = {how, *found};
      }
    }
    return best;
  }

  const Problem& problem_;
  const plans::PlanContext context_;
  plans::ResolvedPlan given_;
  costs::Profile profile_;  // and the costs of densities that were asked for
  const Machines machines_;
};

}  // namespace

std::optional<plans::DenseFallback> dense_fallback(const Problem& problem, const TimedPlan& plan) {
  const casync::Strategy& strategy = casync::find_strategy(plan.plan.strategy);
  if (strategy.form != casync::Strategy::Form::kEncoded) return std::nullopt;
  BreakEven search(problem, plan);
  if (!search.sends_sparse()) return std::nullopt;
  return search.find();
}

}  // namespace hipress::planner
