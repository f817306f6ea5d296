#include "planner/analysis/break_even_density.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_options.hpp"

namespace hipress::planner {
namespace {

constexpr double kLeastDensity = 1e-6;
constexpr int kBisections = 14;  // narrow a range of a factor of 1e6 to 0.1 %

/// Error: a time is unknown, or was simulated with other approximations than the times before.
struct NotKnown {
  std::string why;
};

class Search {
 public:
  Search(const Problem& problem, const TimedPlan& plan)
      : problem_(problem),
        context_{.model = problem.model, .nodes = plan.plan.nodes},
        given_{.plan = plan.plan, .codecs = {}, .transfer_order = plan.transfer_order} {
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

  BreakEvenDensity find() {
    try {
      return {.dense = fallback()};
    } catch (const NotKnown& reason) {
      return {.dense = std::nullopt, .diagnostic = reason.why};
    } catch (const io::InputError& error) {  // the program rejects this density
      return {.dense = std::nullopt, .diagnostic = error.what()};
    }
  }

 private:
  struct Dense {
    plans::DenseFallback how;
    double seconds = 0;
  };

  std::optional<plans::DenseFallback> fallback() {
    Dense dense = fastest_dense();
    double low = kLeastDensity, high = 1;
    if (seconds(low) >= dense.seconds || seconds(high) <= dense.seconds) return std::nullopt;
    for (int i = 0; i < kBisections; ++i) {
      const double middle = std::sqrt(low * high);
      (seconds(middle) <= dense.seconds ? low : high) = middle;
    }
    dense.how.above = low;
    return dense.how;
  }

  Dense fastest_dense() {
    std::vector<std::string> algorithms = {"none"};
    for (const std::string& algorithm : problem_.algorithms) {
      if (kernels::make_codec(algorithm)->traits().half_precision) algorithms.push_back(algorithm);
    }
    std::optional<Dense> best;
    for (const std::string& algorithm : algorithms) {
      for (const std::int64_t slices : {1, 2, 4}) {
        const std::int64_t partitions = std::min(slices * given_.plan.nodes, plans::kMaxPartitions);
        const plans::DenseFallback how = {.above = 0,
                                          .algorithm = algorithm,
                                          .partitions = static_cast<std::int32_t>(partitions)};
        const double found = seconds(1, how);
        if (!best || found < best->seconds) best = {how, found};
      }
    }
    return *best;
  }

  /// Iteration time of the plan at a density, or of its dense fallback.
  double seconds(double density, const std::optional<plans::DenseFallback>& dense = {}) {
    plans::ResolvedPlan changed = given_;
    changed.dense = dense;
    plans::set_density(density, context_, changed);
    const AffordableTime time = affordable_iteration(problem_.model, changed.plan,
                                                     *problem_.machines, *given_.transfer_order);
    if (!time.iteration_s) throw NotKnown{time.diagnostic};
    if (!given_up_) given_up_ = time.diagnostic;
    if (*given_up_ != time.diagnostic) {
      throw NotKnown{"sparse and dense plans cannot be simulated in the same way: " +
                     (time.diagnostic.empty() ? *given_up_ : time.diagnostic)};
    }
    return *time.iteration_s;
  }

  const Problem& problem_;
  const plans::PlanContext context_;
  plans::ResolvedPlan given_;
  std::optional<std::string> given_up_;  // common diagnostic of all times
};

}  // namespace

std::optional<BreakEvenDensity> break_even_density(const Problem& problem, const TimedPlan& plan) {
  const casync::Topology& topology = casync::find_topology(plan.plan.topology);
  if (topology.form != casync::Topology::Form::kEncoded) return std::nullopt;
  Search search(problem, plan);
  if (!search.sends_sparse()) return std::nullopt;
  return search.find();
}

}  // namespace hipress::planner
