#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hipress::models {

/// The share of a step that is saved if one thing is twice as fast, all else as it is.
struct Gain {
  std::string_view what;  ///< "computation"
  double share = 0;
};

/// Names what bounds a job: what saves most if it is twice as fast, and everything that saves
/// nearly as much: "computation", "computation and the network alike". "no one thing" where nothing
/// alone saves much.
std::string bound_by(std::span<const Gain> gains);

}  // namespace hipress::models
