#pragma once

#include <cstdint>
#include <vector>

#include "planner/timing/pattern.hpp"

/// Lower bounds on the times of a pattern's steps. They depend on the pattern alone, not on the
/// other work of its nodes. docs/bound.md ("Few large gradients") derives them.
namespace hipress::planner {

/// Per step of a pattern: time in ps from its start until it and all steps that depend on it have
/// ended. Steps wait only for their predecessors, and resources are serial.
using StepTails = std::vector<std::int64_t>;
StepTails step_tails(const Pattern& pattern);

/// Earliest start of each step, in ps after the pattern becomes ready. With `ports_in_order`, an
/// egress serves the steps without predecessors first, in the order of steps, as on network port.
/// Codec streams do so on every network, except with batched launches (`codecs_in_order` false).
std::vector<std::int64_t> step_heads(const Pattern& pattern, bool ports_in_order,
                                     bool codecs_in_order = true);

}  // namespace hipress::planner
