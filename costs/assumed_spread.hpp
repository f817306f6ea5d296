#pragma once

#include "costs/profile.hpp"
#include "costs/spread.hpp"

namespace hipress::costs {

/// The profile's own spread, or what is assumed of one that does not say: wide for one whose costs
/// are estimates, narrower for measured ones.
Spread spread_of(const Profile& profile);

}  // namespace hipress::costs
