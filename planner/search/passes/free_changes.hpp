#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/search/moves.hpp"
#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// Options that gradient g prefers to `option`, the best first.
using Preference = std::function<std::vector<std::uint16_t>(const Workbench& bench, std::size_t g,
                                                            std::uint16_t option)>;

/// Moves as many gradients to a preferred option as the ceiling allows. Gradients are tried in the
/// order of backward, since the first have most computation to hide behind. Changes are chosen by
/// estimates of the median, then verified on the requested network: all together if they fit, else
/// in halves.
TimedPlan change_within(const Ceiling& ceiling, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference);

/// Applies as many of the changes as the ceiling allows. If all do not fit, each half is tried,
/// recursively. If `descends`, each part must lower the upper end.
TimedPlan accept(std::span<const Move::Change> changes, const Ceiling& ceiling,
                 const PassContext& context, Workbench& bench, const TimedPlan& plan,
                 bool descends = false);

}  // namespace hipress::planner
