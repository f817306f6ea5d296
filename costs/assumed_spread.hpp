#pragma once

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "costs/spread.hpp"

namespace hipress::costs {

/// Spread of a profile. If it has none, one is assumed: wider for estimated costs than for
/// measured.
Spread spread_of(const Profile& profile);

/// False if the cluster has the bandwidth that the profile measured, which varies by the profile's
/// spread. All other bandwidths are given.
bool rates_are_given(const Profile& profile, const Cluster& cluster);

}  // namespace hipress::costs
