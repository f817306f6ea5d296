#include "casync/factors.hpp"

#include <algorithm>
#include <cstddef>

namespace hipress::casync {

std::int64_t FactorSums::most_in(std::int64_t partitions) const {
  return round_up(end, kSliceWord * partitions);
}

std::int64_t FactorSums::elements_in(std::int64_t partitions) const {
  return mean_elements(most_in(partitions), values - mean_values, partitions);
}

Factor FactorSums::factor(std::uint32_t unit, std::uint32_t stage) const {
  return {.unit = unit,
          .stage = stage,
          .values = values,
          .elements = elements,
          .element_ranks = element_ranks,
          .value_ranks = value_ranks,
          .mean_values = mean_values};
}

Factors factors_of(const Algorithm* algorithm, const models::Gradient& gradient) {
  Factors factors;
  if (!is_additive(algorithm)) return factors;
  for (const Algorithm::Factor& one : algorithm->stages(shape_of(gradient))) {
    constexpr std::int64_t kValueBytes = sizeof(float);
    const std::int64_t values = one.bytes / kValueBytes;
    factors.push_back({.end = values,
                       .values = values,
                       .elements = gradient.elements,
                       .element_ranks = gradient.elements * one.rank,
                       .value_ranks = values * one.rank,
                       .mean_values = one.mean_bytes > 0 ? one.mean_bytes / kValueBytes : values});
  }
  return factors;
}

void join(Factors& group, const Factors& member) {
  group.resize(member.size());
  for (std::size_t stage = 0; stage < member.size(); ++stage) {
    FactorSums& sums = group[stage];
    sums.end = round_up(sums.end, kFactorAlignment) + member[stage].values;
    sums.values += member[stage].values;
    sums.elements += member[stage].elements;
    sums.element_ranks += member[stage].element_ranks;
    sums.value_ranks += member[stage].value_ranks;
    sums.mean_values += member[stage].mean_values;
  }
}

std::vector<Factor> as_factors(const Factors& factors) {
  std::vector<Factor> list;
  for (std::uint32_t stage = 0; stage < factors.size(); ++stage) {
    list.push_back(factors[stage].factor(0, stage));
  }
  return list;
}

std::int64_t mean_elements(std::int64_t most, std::int64_t fewer, std::int64_t partitions) {
  const std::int64_t multiple = kSliceWord * partitions;
  return std::max(multiple, round_up(most - fewer, multiple));
}

}  // namespace hipress::casync
