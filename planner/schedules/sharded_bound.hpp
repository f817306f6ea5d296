#pragma once

#include <span>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// No plan of a sharded schedule takes less for a step, in seconds, whatever of these algorithms
/// its layers are gathered and reduced with (indices into `plan.algorithms`), at once or host by
/// host. The largest of: computation, behind the first layer's gather and before its reduction,
/// which is the last; what all collectives occupy the network between hosts, and that within them,
/// each by whatever occupies it least. Codecs cost nothing. `plan` says the schedule; its decisions
/// do not matter.
double shard_bound(const Problem& problem, const casync::Plan& plan,
                   std::span<const std::int8_t> gathers, std::span<const std::int8_t> reductions,
                   std::span<const std::uint32_t> exchanges);

}  // namespace hipress::planner
