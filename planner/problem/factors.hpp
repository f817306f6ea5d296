#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "models/model.hpp"

namespace hipress::planner {

/// A factor of a gradient, or of a bulk group of several, that is compressed in stages: what the
/// time of its stage depends on, as casync::Factor has it, and how much of it travels.
struct FactorSums {
  std::int64_t end = 0;  ///< values, each member's part from a multiple of casync::kFactorAlignment
                         ///< on, without the zeros that make slices equal
  std::int64_t values = 0;
  std::int64_t elements = 0;
  std::int64_t element_ranks = 0;
  std::int64_t value_ranks = 0;
  std::int64_t mean_values = 0;  ///< `values`, the mean over steps
  auto operator<=>(const FactorSums&) const = default;

  /// What travels in so many partitions, the mean over steps.
  std::int64_t elements_in(std::int64_t partitions) const;
  /// The same numbers for whoever asks what the stage costs.
  casync::Factor factor(std::uint32_t stage) const;
};

/// By stage; none: not compressed in stages.
using Factors = std::vector<FactorSums>;

/// None of an algorithm without stages, or of raw, which is null.
Factors factors_of(const casync::Algorithm* algorithm, const models::Gradient& gradient);

/// One more member joins a group. The group's may be none yet.
void join(Factors& group, const Factors& member);

/// For TaskCosts::stage_time() and the like.
std::vector<casync::Factor> as_factors(const Factors& factors);

}  // namespace hipress::planner
