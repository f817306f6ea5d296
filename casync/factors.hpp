#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "models/model.hpp"

namespace hipress::casync {

/// Values that each member's part of a factor begins at a multiple of: codecs want 16 bytes.
inline constexpr std::int64_t kFactorAlignment = 4;

/// A factor of a gradient, or of a bulk group of several: what the time of its stage depends on, as
/// Factor has it, and how much of it travels.
struct FactorSums {
  std::int64_t end = 0;  ///< values, each member's part from a multiple of kFactorAlignment on,
                         ///< without the zeros that make slices equal
  std::int64_t values = 0;
  std::int64_t elements = 0;
  std::int64_t element_ranks = 0;
  std::int64_t value_ranks = 0;
  std::int64_t mean_values = 0;  ///< `values`, the mean over steps
  auto operator<=>(const FactorSums&) const = default;

  /// What travels in so many partitions, at most.
  std::int64_t most_in(std::int64_t partitions) const;
  /// The same, the mean over steps.
  std::int64_t elements_in(std::int64_t partitions) const;
  /// The same numbers for whoever asks what the stage costs.
  Factor factor(std::uint32_t unit, std::uint32_t stage) const;
};

/// By stage; none: what is sent are no factors.
using Factors = std::vector<FactorSums>;

/// None where an algorithm's messages are not additive, and of raw, which is null.
Factors factors_of(const Algorithm* algorithm, const models::Gradient& gradient);

/// One more member joins a group. The group's may be none yet.
void join(Factors& group, const Factors& member);

/// For TaskCosts::codec_time() and the like.
std::vector<Factor> as_factors(const Factors& factors);

/// What travels of a factor in the mean over steps, of which `most` does at most, in partitions of
/// one length, and so many values fewer in the mean.
std::int64_t mean_elements(std::int64_t most, std::int64_t fewer, std::int64_t partitions);

}  // namespace hipress::casync
