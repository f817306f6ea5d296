#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "models/model.hpp"

namespace hipress::casync {

/// Alignment of each member's part of a factor, in values: codecs require 16 bytes.
inline constexpr std::int64_t kFactorAlignment = 4;

/// A factor of a gradient or of a bulk group: its length on the wire, and the sums in Factor, which
/// determine the time of its stage.
struct FactorSums {
  std::int64_t end = 0;  ///< end of the last member's part in values, before the padding that makes
                         ///< slices equally long
  std::int64_t values = 0;
  std::int64_t elements = 0;
  std::int64_t element_ranks = 0;
  std::int64_t value_ranks = 0;
  std::int64_t mean_values = 0;  ///< mean of `values` over steps
  auto operator<=>(const FactorSums&) const = default;

  /// Largest number of values on the wire, padded to `partitions` slices of equal length.
  std::int64_t most_in(std::int64_t partitions) const;
  /// Mean number of values on the wire over steps, with the same padding.
  std::int64_t elements_in(std::int64_t partitions) const;
  Factor factor(std::uint32_t unit, std::uint32_t stage) const;
};

/// Factors by stage; empty if the algorithm sends no factors.
using Factors = std::vector<FactorSums>;

/// Factors of a gradient; empty if the algorithm is null (raw) or its messages are not additive.
Factors factors_of(const Algorithm* algorithm, const models::Gradient& gradient);

/// Adds a member's factors to a group's. An empty group takes the member's number of stages.
void join(Factors& group, const Factors& member);

/// The factors by stage, in the form that TaskCosts::codec_time() takes.
std::vector<Factor> as_factors(const Factors& factors);

/// Mean number of a factor's values on the wire: the largest number, `most`, less `fewer`, rounded
/// up to partitions of equal length.
std::int64_t mean_elements(std::int64_t most, std::int64_t fewer, std::int64_t partitions);

}  // namespace hipress::casync
