#pragma once

#include <vector>

#include "casync/task.hpp"

namespace hipress::models {
struct Model;
}

namespace hipress::casync {

/// CPU load and memory traffic that a rank's computation causes on its host, at full speed.
struct Computing {
  /// Number of threads with which a rank computes. 0: computation takes no cores.
  int threads = 0;
  /// Mean number of cores in use during Forward, Backward and Steps tasks; at most `threads`.
  double forward = 0, backward = 0, steps = 0;
  /// Per gradient: number of cores in use during the Backward task that completes it; empty:
  /// `backward` for all.
  std::vector<double> of_gradients = {};
  /// Bytes per second that a rank reads and writes in its host's memory; 0 if unknown.
  double memory_traffic = 0;

  double cores(const Task& task) const {
    if (task.kind == Kind::kForward) return forward;
    if (task.kind == Kind::kSteps) return steps;
    return task.gradient < of_gradients.size() ? of_gradients[task.gradient] : backward;
  }
  bool operator==(const Computing&) const = default;
};

/// Granularity of Backward tasks: one gradient each, or several.
enum class BackwardTasks : std::uint8_t { kOfGradients, kOfSeveral };

/// Load of one rank that trains the model. With kOfSeveral, Computing::of_gradients stays empty.
Computing computing_of(const models::Model& model, BackwardTasks tasks);

}  // namespace hipress::casync
