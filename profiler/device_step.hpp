#pragma once

#include <string>
#include <vector>

#include "costs/overlap.hpp"
#include "profiler/device_overlap.hpp"

namespace hipress::profiler {

/// Times of a step on one device, in which computation overlaps with a codec, transfers, or both.
struct StepCheck {
  std::string name;  ///< mix and simultaneous work: "assumed_beside_codec"
  models::Mix mix = {};
  double measured_s = 0;   ///< from the common start to the end of the last work
  double predicted_s = 0;  ///< simulated with the overlap factors
  double unslowed_s = 0;   ///< simulated without slowdown
};

/// Runs synthetic steps of several mixes, whose kernels alternate like a model's layers, and
/// simulates them from the time of each part alone. Leaves out classes that the device cannot
/// compute.
std::vector<StepCheck> check_steps(OverlapBench& bench, const Options& options,
                                   const costs::OverlapFactors& factors);

}  // namespace hipress::profiler
