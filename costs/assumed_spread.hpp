#pragma once

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "costs/spread.hpp"

namespace hipress::costs {

/// Spread of a profile: its own or, if unset, an assumed one, wider for estimated costs than for
/// measured ones.
Spread spread_of(const Profile& profile);

/// False if the cluster has the profile's own link, whose rate varies as its spread says. Other
/// links have given rates.
bool rates_are_given(const Profile& profile, const Cluster& cluster);

}  // namespace hipress::costs
