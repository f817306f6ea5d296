#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costs/cluster.hpp"
#include "models/model.hpp"
#include "requests/record.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/traffic.hpp"

/// Keys that results of several requests have.
namespace hipress::requests {

/// Shares by the names of all classes.
std::vector<std::pair<std::string, double>> shares_of(const models::Mix& mix);

/// Adds the mix that the prediction rests on, `mix`, and whether it was assumed, `mix_assumed`,
/// where the cluster's overlap tells classes of computation apart. Null pointers are for schemas.
void fill_mix(Record& record, const costs::Cluster* cluster, const models::Model* model);

/// Adds what a step comes to: the share of computation, with its interval, and what is sent.
void fill_load(Record& record, const sim::ComputeUtilisation& utilisation,
               const sim::Traffic& traffic);

}  // namespace hipress::requests
