#pragma once

#include <vector>

#include "costs/collective_way.hpp"
#include "costs/machine.hpp"

namespace hipress::costs {

/// Ways in which Gloo can carry out an operation; processors send its messages over TCP. Sources:
/// Gloo's docs/algorithms.md, gloo/allreduce.cc and its neighbours. The first way is Gloo's default
/// at any size. Gloo has no estimates, so `planned_s` is 0. collective_ways() calls this for
/// machines with Library::kGloo; both accept the same ranks.
std::vector<CollectiveWay> gloo_ways(const Machine& machine, Ranks ranks, Operation operation,
                                     double bytes);

}  // namespace hipress::costs
