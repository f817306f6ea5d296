#pragma once

#include <vector>

#include "costs/collective_way.hpp"
#include "costs/machine.hpp"

namespace hipress::costs {

/// Gloo's ways for an operation, whose messages go through the processors and TCP (algorithms:
/// docs/algorithms.md, gloo/allreduce.cc and its neighbours in Gloo). The way that it takes by
/// default is the first, at any size; it has no estimates, so `planned_s` is 0. The ranks are
/// those that collective_ways() accepts, which calls it for machines with Library::kGloo.
std::vector<CollectiveWay> gloo_ways(const Machine& machine, Ranks ranks, Operation operation,
                                     double bytes);

}  // namespace hipress::costs
