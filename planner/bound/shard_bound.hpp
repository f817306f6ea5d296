#pragma once

#include <span>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// Lower bound on the seconds of a step, for all plans of a sharded schedule that gather and reduce
/// layers with any of these algorithms (indices into `plan.algorithms`), directly or host by host.
/// It is the largest of three times: computation, with the first layer's gather before it and the
/// first layer's reduction after it; the time that all collectives occupy the network between
/// hosts; and the same within hosts. Each collective is raw or takes the algorithm with the least
/// such time. Codecs cost nothing. `plan` gives the schedule; its decisions do not matter.
double shard_bound(const Problem& problem, const casync::Plan& plan,
                   std::span<const std::int8_t> gathers, std::span<const std::int8_t> reductions,
                   std::span<const std::uint32_t> exchanges);

}  // namespace hipress::planner
