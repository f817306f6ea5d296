#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/search/moves.hpp"
#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// The options that gradient g would rather have than `option`, the most wanted first.
using Preference = std::function<std::vector<std::uint16_t>(const Workbench& bench, std::size_t g,
                                                            std::uint16_t option)>;

/// The plan with as many gradients at a preferred option as the ceiling allows. Gradients come in
/// the order of backward, since the first have most to hide behind. Changes are chosen by estimates
/// of the median and accepted on the network asked for: all together if they fit, else in halves.
TimedPlan change_within(const Ceiling& ceiling, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference);

/// The plan with as many of the changes as can be within the ceiling: all, else those of each half.
/// Where `descends`, each part is to make the upper end lower than it was.
TimedPlan accept(std::span<const Move::Change> changes, const Ceiling& ceiling,
                 const PassContext& context, Workbench& bench, const TimedPlan& plan,
                 bool descends = false);

}  // namespace hipress::planner
