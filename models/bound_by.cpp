#include "models/bound_by.hpp"

#include <algorithm>

namespace hipress::models {

std::string bound_by(std::span<const Gain> gains) {
  constexpr double kLeast = 0.05;  // smaller gains do not bound a job
  constexpr double kNearly = 0.8;  // relative to the largest gain
  const double most = gains.empty() ? 0 : std::ranges::max(gains, {}, &Gain::share).share;
  if (most < kLeast) return "no one thing";
  std::string names;
  std::size_t count = 0;
  for (const Gain& gain : gains) {
    if (gain.share < kNearly * most) continue;
    names += (count++ > 0 ? " and " : "") + std::string(gain.what);
  }
  return count > 1 ? names + " alike" : names;
}

}  // namespace hipress::models
