#pragma once

#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::sim {

/// Says of each algorithm what its messages come to (Algorithm::share): where their length varies
/// with the data and the profile has a sample, CodecCosts::message_share, else all of the bound.
void predict_sizes(const costs::Profile& profile, std::vector<casync::Algorithm>& algorithms);

}  // namespace hipress::sim
