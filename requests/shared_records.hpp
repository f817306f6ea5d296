#pragma once

#include <string>
#include <utility>
#include <vector>

#include "costs/cluster.hpp"
#include "models/model.hpp"
#include "requests/record.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/traffic.hpp"

/// Keys that several requests have in their results.
namespace hipress::requests {

/// Shares of all classes, with their names.
std::vector<std::pair<std::string, double>> shares_of(const models::Mix& mix);

/// Adds `mix`, the mix of computation behind the prediction. Adds `mix_assumed` if the cluster's
/// overlap distinguishes classes of computation. Null pointers are for schemas.
void fill_mix(Record& record, const costs::Cluster* cluster, const models::Model* model);

/// Adds a step's load: the share of computation in its time, with an interval, and the bytes sent.
void fill_load(Record& record, const sim::ComputeUtilisation& utilisation,
               const sim::Traffic& traffic);

}  // namespace hipress::requests
