#pragma once

#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::sim {

/// Makes the messages of algorithms, which are as long as their bounds, as long as a prediction
/// takes them to be: where their length varies with the data and the profile has a sample
/// (CodecCosts::message_share), that share of the bound, rounded up to a multiple of 4. Returns
/// whether that changes any. Rooms and plans go by the bound nevertheless.
bool predict_sizes(const costs::Profile& profile, std::vector<casync::Algorithm>& algorithms);

}  // namespace hipress::sim
