#pragma once

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "costs/spread.hpp"

namespace hipress::costs {

/// The profile's own spread, or what is assumed of one that does not say: wide for one whose costs
/// are estimates, narrower for measured ones.
Spread spread_of(const Profile& profile);

/// False if the cluster's link is the one that the profile was measured on, whose rate varies as
/// its spread says. Other rates are what somebody says that links have.
bool rates_are_given(const Profile& profile, const Cluster& cluster);

}  // namespace hipress::costs
