#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::models {

/// Share of a step saved if one component is twice as fast and all others are unchanged.
struct Gain {
  std::string_view what;  ///< "computation"
  double share = 0;
};

/// Names the bottleneck: the component that saves most if it is twice as fast, and all that save
/// nearly as much: "computation", "computation and the network alike". "no one thing" if no
/// component alone saves much.
std::string bound_by(std::span<const Gain> gains);

}  // namespace hipress::models
