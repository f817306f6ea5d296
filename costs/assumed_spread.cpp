#include "costs/assumed_spread.hpp"

namespace hipress::costs {
namespace {

/// Assumed spread of a profile with measured costs.
constexpr Spread kMeasured = {
    .host = 0.10, .links = 0.05, .compute = 0.02, .model = 0.03, .iterations = 0.05};
/// Assumed spread of published, derived or estimated costs.
constexpr Spread kEstimated = {
    .host = 0.30, .links = 0.15, .compute = 0.05, .model = 0.05, .iterations = 0.05};

bool is_measured(const Profile& profile) { return profile.source.starts_with("measured"); }

}  // namespace

Spread spread_of(const Profile& profile) {
  if (profile.spread) return *profile.spread;
  return is_measured(profile) ? kMeasured : kEstimated;
}

bool rates_are_given(const Profile& profile, const Cluster& cluster) {
  return !is_measured(profile) || cluster.link.bandwidth != profile.link.bandwidth;
}

}  // namespace hipress::costs
