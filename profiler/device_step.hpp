#pragma once

#include <string>
#include <vector>

#include "costs/overlap.hpp"
#include "profiler/device_overlap.hpp"

namespace hipress::profiler {

/// A step of known computation on one device beside a codec, transfers or both, in seconds.
struct StepCheck {
  std::string name;  ///< "assumed_beside_codec": the mix, and what runs beside it
  models::Mix mix = {};
  double measured_s = 0;   ///< from the start of all until the last is over
  double predicted_s = 0;  ///< by the simulator with the factors
  double unslowed_s = 0;   ///< the same as if nothing slowed anything
};

/// Runs made-up steps of several mixes, whose kernels alternate as a model's layers do, and
/// simulates them from the time that each part takes alone. A class that the device cannot compute
/// is left out; its share goes to the other classes.
std::vector<StepCheck> check_steps(OverlapBench& bench, const Options& options,
                                   const costs::OverlapFactors& factors);

}  // namespace hipress::profiler
