#pragma once

#include <cstdint>
#include <vector>

#include "planner/timing/pattern.hpp"

/// Lower bounds on a pattern's times from the pattern alone, whatever else its nodes do.
/// docs/bound.md ("Few large gradients") derives them.
namespace hipress::planner {

/// Times in ps, per step of a pattern, from its start until all steps that depend on it have ended,
/// if each waits only for its predecessors and resources are serial.
using StepTails = std::vector<std::int64_t>;
StepTails step_tails(const Pattern& pattern);

/// Earliest start per step, in ps after the pattern's release. With `ports_in_order`, an egress
/// begins with the steps without predecessors, in the order of steps, as on network port. Codec
/// streams do so on every network, unless launches are batched.
std::vector<std::int64_t> step_heads(const Pattern& pattern, bool ports_in_order,
                                     bool codecs_in_order = true);

}  // namespace hipress::planner
