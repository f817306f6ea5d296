#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/search/moves.hpp"
#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// Returns the options that gradient g prefers to `option`, the best first.
using Preference = std::function<std::vector<std::uint16_t>(const Workbench& bench, std::size_t g,
                                                            std::uint16_t option)>;

/// Moves as many gradients to a preferred option as the ceiling allows. Gradients are tried in the
/// order of backward, since the first ones have most computation to hide behind. Changes are chosen
/// by estimates of the iteration time, and verified by accept() on the requested network.
TimedPlan change_within(const Ceiling& ceiling, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference);

/// Applies as many of the changes as the ceiling allows. If they exceed it together, each half is
/// tried, recursively. If `descends`, each accepted part must lower the upper end.
TimedPlan accept(std::span<const Move::Change> changes, const Ceiling& ceiling,
                 const PassContext& context, Workbench& bench, const TimedPlan& plan,
                 bool descends = false);

}  // namespace hipress::planner
