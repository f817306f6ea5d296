#pragma once

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "costs/spread.hpp"

namespace hipress::costs {

/// Spread of a profile. If it has none, one is assumed: wider for estimated costs than for measured
/// ones.
Spread spread_of(const Profile& profile);

/// True if the link's bandwidth is given, and therefore certain. False if it is the one that the
/// profile measured, which varies by the profile's spread.
bool rates_are_given(const Profile& profile, const Cluster& cluster);

}  // namespace hipress::costs
