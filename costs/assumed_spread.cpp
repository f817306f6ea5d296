#include "costs/assumed_spread.hpp"

namespace hipress::costs {
namespace {

/// Of one whose costs were measured, but which does not say how they are spread.
constexpr Spread kMeasured = {
    .host = 0.10, .links = 0.05, .compute = 0.02, .model = 0.03, .iterations = 0.05};
/// Of published or derived costs, on whatever machines they are used for.
constexpr Spread kEstimated = {
    .host = 0.30, .links = 0.15, .compute = 0.05, .model = 0.05, .iterations = 0.05};

}  // namespace

Spread spread_of(const Profile& profile) {
  if (profile.spread) return *profile.spread;
  return profile.source.starts_with("measured") ? kMeasured : kEstimated;
}

}  // namespace hipress::costs
