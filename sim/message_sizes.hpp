#pragma once

#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::sim {

/// Sets Algorithm::share of each algorithm: CodecCosts::message_share if message lengths vary with
/// the data and the profile has a sample, else 1 (the upper bound).
void predict_sizes(const costs::Profile& profile, std::vector<casync::Algorithm>& algorithms);

}  // namespace hipress::sim
