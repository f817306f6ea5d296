#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/arithmetic.hpp"
#include "models/model.hpp"

namespace hipress::models {

/// Times that the user gives for a model, as texts with units; empty: not given.
struct TimeOptions {
  std::string compute_time = {};  ///< all forward and backward passes of a step together
  std::string forward = {};
  // A job whose computation is derived from its model's Work, where `batch` is not 0.
  std::uint32_t batch = 0;      ///< sequences, images or samples of a micro-step and GPU
  std::uint32_t seq = 0;        ///< tokens of a sequence; 0: the model's
  std::string dtype = {};       ///< a row of dtypes()
  std::string checkpoint = {};  ///< a row of checkpoints()
  std::uint32_t micro_steps = 0;
  std::string mfu = {};             ///< "45%"
  double tokens_per_s = 0;          ///< of a GPU while it computes
  std::string per_gradient = {};    ///< DDP's own time for each gradient; kOwnTime_s
  std::optional<Rates> rates = {};  ///< of the machine, if one is named

  bool says_computation() const { return batch > 0 || !compute_time.empty() || !forward.empty(); }
};

/// Gives the model these times. With a `batch`, they are derived first, by compute(). `forward`
/// includes the optimizer, except where a model has several micro-steps. Without `forward`, a model
/// that has no forward time gets a third of `compute_time` for it, since backward has twice the
/// FLOPs of forward. The rest of `compute_time` is backward: if the model has ready times, they are
/// scaled in proportion to it; otherwise backward is spread over the gradients in their order, by
/// their `flops` if all have them, else by their elements.
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
