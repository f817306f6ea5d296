#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/codec/stages.hpp"

/// What a stage of a staged codec costs, and how that is found from measured times. An E-element
/// gradient's stage sends a *factor* of F values, which has r columns: the codec's *rank*.
namespace hipress::costs {

/// What the time of a stage depends on. Of several gradients that are coded together, the sums.
struct StageWork {
  std::int64_t elements = 0;       ///< E
  std::int64_t element_ranks = 0;  ///< E·r
  std::int64_t values = 0;         ///< F
  std::int64_t value_ranks = 0;    ///< F·r
  bool operator==(const StageWork&) const = default;
};

/// The work of the encode of stage `stage`, by what the codec says of its stages for a gradient of
/// so many elements: F and r are those of the factor that it makes.
StageWork encode_work(std::span<const kernels::Stage> stages, int stage, std::int64_t elements);

/// The work of the last decode: F is that of all factors together, and r the largest of theirs.
StageWork decode_work(std::span<const kernels::Stage> stages, std::int64_t elements);

/// Seconds of one stage: a + b·E + c·E·r + d·F + e·F·r, none of them negative.
struct StageCosts {
  double a_s = 0;                 ///< of launches
  double per_element_s = 0;       ///< what reads or writes the gradient
  double per_element_rank_s = 0;  ///< products with a factor
  double per_value_s = 0;         ///< what reads or writes the factor
  double per_value_rank_s = 0;    ///< making the factor's columns orthogonal

  double seconds(const StageWork& work) const;
  /// The stage that takes `factor` times as long.
  StageCosts times(double factor) const;
  bool operator==(const StageCosts&) const = default;
};

/// Seconds for one gradient whose factor has so many values and that rank.
double stage_seconds(const StageCosts& costs, std::int64_t elements, std::int64_t values, int rank);

/// One measured time.
struct StageSample {
  StageWork work;
  double seconds = 0;
};

/// Fitted costs, and how well they explain their samples.
struct StageFit {
  StageCosts costs;
  double median_relative_residual = 0;  ///< |costs − sample| / sample
  double max_relative_residual = 0;
};

/// Fits the five terms to samples by least squares of relative residuals, none of them negative,
/// with Huber weights as fit_curve() has them. Of fits that are as good, the one with fewer terms.
/// At least one sample, each with a positive, finite time (std::invalid_argument otherwise).
StageFit fit_stage(const std::vector<StageSample>& samples);

/// The algorithm's text with that rank, "acpsgd(rank=8,x=1)" of "acpsgd(x=1)", or with none given,
/// "acpsgd(x=1)" of "acpsgd(rank=4,x=1)": costs of stages hold for every rank.
std::string with_rank(std::string_view algorithm, std::optional<int> rank);

}  // namespace hipress::costs
