#pragma once

#include <vector>

#include "costs/collective_way.hpp"
#include "costs/machine.hpp"

namespace hipress::costs {

/// Gloo's ways for an operation, whose messages go through the processors and TCP (algorithms:
/// docs/algorithms.md, gloo/allreduce.cc and its neighbours in Gloo). The first way is Gloo's
/// default at any size. Gloo has no estimates, so `planned_s` is 0. collective_ways() calls this
/// for machines with Library::kGloo; both accept the same ranks.
std::vector<CollectiveWay> gloo_ways(const Machine& machine, Ranks ranks, Operation operation,
                                     double bytes);

}  // namespace hipress::costs
