#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costs/cluster.hpp"
#include "io/document.hpp"
#include "models/model.hpp"

namespace hipress::requests {

/// Shares by the names of all classes.
std::vector<std::pair<std::string, double>> shares_of(const models::Mix& mix);

/// Adds the mix that the prediction rests on, `mix`, and whether it was assumed, `mix_assumed`,
/// where the cluster's overlap tells classes of computation apart.
void add_mix(const costs::Cluster& cluster, const models::Model& model, io::Document& report);

}  // namespace hipress::requests
