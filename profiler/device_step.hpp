#pragma once

#include <string>
#include <vector>

#include "costs/overlap.hpp"
#include "profiler/device_overlap.hpp"

namespace hipress::profiler {

/// Times of a step on one device: known computation beside a codec, beside transfers, or beside
/// both.
struct StepCheck {
  std::string name;  ///< mix and work beside it: "assumed_beside_codec"
  models::Mix mix = {};
  double measured_s = 0;   ///< time from the common start to the end of the last work
  double predicted_s = 0;  ///< simulated with the overlap factors
  double unslowed_s = 0;   ///< simulated without slowdown
};

/// Runs synthetic steps of several mixes, whose kernels alternate like a model's layers, and
/// simulates them from the time of each part alone. A class that the device cannot compute is left
/// out; its share goes to the other classes.
std::vector<StepCheck> check_steps(OverlapBench& bench, const Options& options,
                                   const costs::OverlapFactors& factors);

}  // namespace hipress::profiler
