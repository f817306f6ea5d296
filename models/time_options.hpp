#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Times that the user gives for a model, as texts with units; empty: not given.
struct TimeOptions {
  std::string compute_time = {};  ///< all forward and backward passes of a step together
  std::string forward = {};
};

/// Gives the model these times. `forward` includes the optimizer, except where a model has several
/// micro-steps. Without `forward`, a model that has no forward time gets a third of `compute_time`
/// for it, since backward has twice the FLOPs of forward. The rest of `compute_time` is backward:
/// if the model has ready times, they are scaled in proportion to it; otherwise backward is spread
/// over the gradients in their order, by their `flops` if all have them, else by their elements.
///
/// Returns sentences for the user about what was done. InputError, which names the field, for a
/// value without unit, out of range, or that leaves no time for backward.
std::vector<std::string> apply(const TimeOptions& options, Model& model);

/// What is not known of a model's times.
enum class MissingTimes : std::uint8_t {
  kNone,
  kForward,  ///< iterations are shorter than they are
  kReady,    ///< all gradients are ready at once, so that nothing hides communication
};
MissingTimes missing_times(const Model& model);

}  // namespace hipress::models
