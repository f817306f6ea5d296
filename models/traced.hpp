#pragma once

#include <optional>
#include <string>

namespace hipress::io {
class YamlNode;
}

namespace hipress::models {

/// What the trace that a model was made of says about one step of the job: medians, in seconds.
struct Traced {
  int steps = 0;                       ///< that the medians are of
  double step_s = 0;                   ///< positive
  double compute_s = 0;                ///< the GPU computes
  double communication_s = 0;          ///< the GPU communicates
  double exposed_communication_s = 0;  ///< of gradients, while the GPU does not compute
  double idle_s = 0;                   ///< the GPU does nothing
  /// Exposed communication that carries no gradients of the model, and is in no other part.
  double other_communication_s = 0;
};

/// Reads the map `traced`, in which `other_communication` may be missing. io::InputError for
/// unknown and missing keys, a step of no length, and parts longer than the step.
Traced parse_traced(const io::YamlNode& node);

/// The key `traced` of a model YAML; none where a model has no such key, or is no YAML file.
/// Throws as read_model().
std::optional<Traced> read_traced(const std::string& path);

/// The most that any compression can gain in the traced job, as a sentence: no compression can
/// save more than its exposed communication.
std::string most_gain(const Traced& traced);

}  // namespace hipress::models
