#pragma once

#include <cstdint>
#include <vector>

#include "planner/timing/pattern.hpp"

/// What a pattern alone says about how long it takes at the least, whatever else its nodes do.
/// docs/bound.md ("Behind a prefix") says why.
namespace hipress::planner {

/// Per step of a pattern: picoseconds from its start until the last that follows it is through, if
/// nothing is waited for but what comes before, and resources do one thing at a time.
using StepTails = std::vector<std::int64_t>;
StepTails step_tails(const Pattern& pattern);

/// Per step: the least picoseconds from the pattern's release until the step starts. With
/// `ports_in_order`, an egress begins with the steps that wait for no other, in the order of steps,
/// as on network port. Codec streams begin so on every network, unless launches are batched.
std::vector<std::int64_t> step_heads(const Pattern& pattern, bool ports_in_order,
                                     bool codecs_in_order = true);

/// Whether codec streams and egresses serve the steps that wait for none in the order of steps, and
/// before all others of the pattern.
bool begins_in_order(const Pattern& pattern);

/// Picoseconds from a pattern's release until it is through, at the least. `representatives`: nodes
/// that it holds; `tails`: its step_tails().
std::int64_t least_alone(const Pattern& pattern, const StepTails& tails,
                         std::uint32_t representatives);

}  // namespace hipress::planner
