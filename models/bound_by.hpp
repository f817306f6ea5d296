#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::models {

/// Share of a step that doubling one component's speed saves; all others are unchanged.
struct Gain {
  std::string_view what;  ///< "computation"
  double share = 0;
};

/// Names the bottleneck, as in "computation" or "computation and the network alike": the component
/// that saves most if it is twice as fast, and all that save nearly as much. "no one thing" if no
/// component alone saves much.
std::string bound_by(std::span<const Gain> gains);

}  // namespace hipress::models
