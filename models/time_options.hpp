#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/arithmetic.hpp"
#include "models/model.hpp"

namespace hipress::models {

/// Times given by the user for a model, as texts with units; empty: not given.
struct TimeOptions {
  std::string compute_time = {};  ///< all forward and backward passes of a step together
  std::string forward = {};
  // If `batch` is not 0, computation is derived from the model's Work, for this job:
  std::uint32_t batch = 0;      ///< sequences, images or samples per micro-step and GPU
  std::uint32_t seq = 0;        ///< tokens per sequence; 0: the model's
  std::string dtype = {};       ///< a row of dtypes()
  std::string checkpoint = {};  ///< a row of checkpoints()
  std::uint32_t micro_steps = 0;
  std::string mfu = {};             ///< "45%"
  double tokens_per_s = 0;          ///< tokens per second of a GPU while it computes
  std::string per_gradient = {};    ///< DDP's own time per gradient; default kOwnTime_s
  std::optional<Rates> rates = {};  ///< rates of the named machine, if any

  bool says_computation() const { return batch > 0 || !compute_time.empty() || !forward.empty(); }
};

/// Sets the model's times. With `batch`, derives them first by compute(). `forward` includes the
/// optimizer, except in a model with several micro-steps. Without `forward`, a model without
/// forward time gets a third of `compute_time` for it, as backward has twice the FLOPs of forward.
/// The rest of `compute_time` is backward. Existing ready times are scaled to fit it. Without ready
/// times, backward is divided among the gradients in their order, in proportion to `flops` if all
/// have them, otherwise to elements.
///
/// Returns sentences for the user on what was done. InputError names the field for a value that
/// lacks a unit, is out of range, or leaves no time for backward.
std::vector<std::string> apply(const TimeOptions& options, Model& model);

/// Unknown part of a model's times.
enum class MissingTimes : std::uint8_t {
  kNone,
  kForward,  ///< no forward time: predicted iterations are too short
  kReady,    ///< all gradients are ready at once, so communication is not hidden
};
MissingTimes missing_times(const Model& model);

}  // namespace hipress::models
