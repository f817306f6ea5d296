#pragma once

#include "casync/plan.hpp"
#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {

/// What plans are simulated on.
struct Machines {
  const costs::Profile& profile;
  costs::Cluster cluster;  ///< as many nodes as the plan has
  sim::Network network = sim::Network::kFair;
};

/// Simulated iteration time in seconds. io::InputError if the profile lacks an algorithm of the
/// plan.
double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines);

}  // namespace hipress::planner
