#include "costs/overlap.hpp"

#include <algorithm>

namespace hipress::costs {
namespace {

/// True if `holds` is true for every factor in use: the matrix's, or else the constants.
template <typename Predicate>
bool all_of(const OverlapFactors& factors, Predicate holds) {
  if (!factors.matrix) {
    return std::ranges::all_of(kOverlapConstants, [&](const OverlapConstant& constant) {
      return holds(factors.*constant.factor);
    });
  }
  const OverlapMatrix& matrix = *factors.matrix;
  const auto holds_of = [&](const ClassOverlap& row) {
    return std::ranges::all_of(kClassOverlapKeys,
                               [&](const ClassOverlapKey& key) { return holds(row.*key.factor); });
  };
  return holds(matrix.codec_beside_transfer) && holds(matrix.transfer_beside_codec) &&
         std::ranges::all_of(matrix.classes, holds_of);
}

/// Weighted mean Σ m_c·f_c. Divided by the mix's sum, which may differ from 1 by kMixTolerance, and
/// raised to at least 1, since rounding may give less.
double mean(const OverlapMatrix& matrix, const models::Mix& mix, double ClassOverlap::*factor) {
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    sum += mix[i] * matrix.classes[i].*factor;
    total += mix[i];
  }
  return std::max(1.0, sum / total);
}

}  // namespace

void set_constant(OverlapFactors& factors, const OverlapConstant& constant, double value) {
  factors.*constant.factor = value;
  if (!factors.matrix) return;
  if (constant.computation == nullptr) {
    factors.matrix->codec_beside_transfer = factors.matrix->transfer_beside_codec = value;
    return;
  }
  for (ClassOverlap& row : factors.matrix->classes) {
    row.*constant.computation = row.*constant.other = value;
  }
}

OverlapFactors constants_of(const OverlapFactors& factors) {
  const DirectedFactors found = directed(factors, {});
  return {
      .compute_codec = std::max(found.compute_beside_codec, found.codec_beside_compute),
      .compute_transfer = std::max(found.compute_beside_transfer, found.transfer_beside_compute),
      .codec_transfer = std::max(found.codec_beside_transfer, found.transfer_beside_codec)};
}

bool slows(const OverlapFactors& factors) {
  return !all_of(factors, [](double factor) { return factor == 1; });
}

std::optional<double> out_of_range(const OverlapFactors& factors) {
  std::optional<double> wrong;
  all_of(factors, [&](double factor) {
    const bool fits = factor >= 1 && factor <= kMaxOverlap;
    if (!fits) wrong = factor;
    return fits;
  });
  return wrong;
}

DirectedFactors directed(const OverlapFactors& factors, const std::optional<models::Mix>& mix) {
  if (!factors.matrix) {
    return {.compute_beside_codec = factors.compute_codec,
            .compute_beside_transfer = factors.compute_transfer,
            .codec_beside_compute = factors.compute_codec,
            .codec_beside_transfer = factors.codec_transfer,
            .transfer_beside_compute = factors.compute_transfer,
            .transfer_beside_codec = factors.codec_transfer};
  }
  const models::Mix shares = mix.value_or(models::assumed_mix());
  const OverlapMatrix& matrix = *factors.matrix;
  return {.compute_beside_codec = mean(matrix, shares, &ClassOverlap::beside_codec),
          .compute_beside_transfer = mean(matrix, shares, &ClassOverlap::beside_transfer),
          .codec_beside_compute = mean(matrix, shares, &ClassOverlap::slows_codec),
          .codec_beside_transfer = matrix.codec_beside_transfer,
          .transfer_beside_compute = mean(matrix, shares, &ClassOverlap::slows_transfer),
          .transfer_beside_codec = matrix.transfer_beside_codec};
}

}  // namespace hipress::costs
