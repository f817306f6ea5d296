#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/codec/stages.hpp"

/// Costs of one stage of a staged codec, and their fit to measured times. A stage turns a gradient
/// of E elements into a *factor* of F values in r columns, and sends it; r is the codec's *rank*.
namespace hipress::costs {

/// Quantities on which a stage's time depends. If several gradients are coded together, each
/// quantity is a sum over them.
struct StageWork {
  std::int64_t elements = 0;       ///< E
  std::int64_t element_ranks = 0;  ///< E·r
  std::int64_t values = 0;         ///< F
  std::int64_t value_ranks = 0;    ///< F·r
  bool operator==(const StageWork&) const = default;
};

/// Work of encoding stage `stage` for `elements` elements; F and r are those of the stage's factor.
StageWork encode_work(std::span<const kernels::Stage> stages, int stage, std::int64_t elements);

/// Work of the final decode: F is the sum over all factors, r their maximum.
StageWork decode_work(std::span<const kernels::Stage> stages, std::int64_t elements);

/// Seconds of one stage: a + b·E + c·E·r + d·F + e·F·r, with non-negative coefficients.
struct StageCosts {
  double a_s = 0;                 ///< launches
  double per_element_s = 0;       ///< reading and writing the gradient
  double per_element_rank_s = 0;  ///< products with a factor
  double per_value_s = 0;         ///< reading and writing the factor
  double per_value_rank_s = 0;    ///< orthogonalising the factor's columns

  double seconds(const StageWork& work) const;
  /// Costs scaled by `factor`.
  StageCosts times(double factor) const;
  bool operator==(const StageCosts&) const = default;
};

/// Seconds for one gradient, whose factor has `values` values in `rank` columns.
double stage_seconds(const StageCosts& costs, std::int64_t elements, std::int64_t values, int rank);

/// One measured time.
struct StageSample {
  StageWork work;
  double seconds = 0;
};

/// Fitted costs with their residuals.
struct StageFit {
  StageCosts costs;
  double median_relative_residual = 0;  ///< |costs − sample| / sample
  double max_relative_residual = 0;
};

/// Fits the five non-negative coefficients to samples by least squares of relative residuals, with
/// Huber weights as in fit_curve(). Of equally good fits, chooses the one with fewer terms. Throws
/// std::invalid_argument without samples, or if a time is not positive and finite.
StageFit fit_stage(const std::vector<StageSample>& samples);

/// Text of an algorithm with that rank ("acpsgd(rank=8,x=1)" for "acpsgd(x=1)"), or, if unset,
/// without its rank ("acpsgd(x=1)" for "acpsgd(rank=4,x=1)"): costs of stages hold for every rank.
std::string with_rank(std::string_view algorithm, std::optional<int> rank);

}  // namespace hipress::costs
