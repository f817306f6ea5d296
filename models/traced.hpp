#pragma once

#include <optional>
#include <string>

namespace hipress::io {
class YamlNode;
}

namespace hipress::models {

/// Times of a step of the traced job from which a model was made: medians in seconds.
struct Traced {
  int steps = 0;                       ///< number of steps
  double step_s = 0;                   ///< positive
  double compute_s = 0;                ///< the GPU computes
  double communication_s = 0;          ///< the GPU communicates
  double exposed_communication_s = 0;  ///< gradient communication outside computation
  double idle_s = 0;                   ///< the GPU does nothing
  /// Exposed communication that carries no gradients; not part of exposed_communication_s.
  double other_communication_s = 0;
};

/// Reads the map `traced`; `other_communication` is optional. Throws io::InputError for unknown and
/// missing keys, a step of no length, and parts longer than the step.
Traced parse_traced(const io::YamlNode& node);

/// Reads the key `traced` of a model YAML; nullopt without the key, or for other formats. Throws as
/// read_model() does.
std::optional<Traced> read_traced(const std::string& path);

/// Sentence on the upper bound of compression's gain in the traced job: its exposed communication.
std::string most_gain(const Traced& traced);

}  // namespace hipress::models
