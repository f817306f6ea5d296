#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Gives a profile the costs of a sparsifier at a density that was not measured: those between the
/// two nearest densities that were, with the same other parameters, in proportion; beyond all of
/// them, those of the nearest. Returns that in words; empty where nothing was added, since the
/// profile has the algorithm's own costs, or none with the same other parameters.
std::string add_costs_of_density(Profile& profile, const std::string& algorithm);

}  // namespace hipress::costs
