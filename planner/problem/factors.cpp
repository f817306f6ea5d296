#include "planner/problem/factors.hpp"

#include <algorithm>
#include <cstddef>

namespace hipress::planner {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t FactorSums::elements_in(std::int64_t partitions) const {
  const std::int64_t multiple = casync::kSliceWord * partitions;
  const std::int64_t shorter = values - mean_values;
  return std::max(multiple, round_up(round_up(end, multiple) - shorter, multiple));
}

casync::Factor FactorSums::factor(std::uint32_t stage) const {
  return {.unit = 0,
          .stage = stage,
          .values = values,
          .elements = elements,
          .element_ranks = element_ranks,
          .value_ranks = value_ranks,
          .mean_values = mean_values};
}

Factors factors_of(const casync::Algorithm* algorithm, const models::Gradient& gradient) {
  Factors factors;
  if (!is_additive(algorithm)) return factors;
  for (const casync::Algorithm::Factor& one : algorithm->stages(shape_of(gradient))) {
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
    sums.end = round_up(sums.end, casync::kFactorAlignment) + member[stage].values;
    sums.values += member[stage].values;
    sums.elements += member[stage].elements;
    sums.element_ranks += member[stage].element_ranks;
    sums.value_ranks += member[stage].value_ranks;
    sums.mean_values += member[stage].mean_values;
  }
}

std::vector<casync::Factor> as_factors(const Factors& factors) {
  std::vector<casync::Factor> list;
  for (std::uint32_t stage = 0; stage < factors.size(); ++stage) {
    list.push_back(factors[stage].factor(stage));
  }
  return list;
}

}  // namespace hipress::planner
