#pragma once

#include <functional>
#include <vector>

#include "planner/search/passes/pass.hpp"

namespace hipress::planner {

/// The options that gradient g would rather have than `option`, the most wanted first.
using Preference = std::function<std::vector<std::uint16_t>(const Workbench& bench, std::size_t g,
                                                            std::uint16_t option)>;

/// The plan with as many gradients at a preferred option as can be with an iteration of at most
/// `limit_s`: gradients in the order of backward, since the first have most to hide behind. Changes
/// are chosen by estimates, and accepted on the network asked for: all together if that goes, else
/// in halves.
TimedPlan change_within(double limit_s, const PassContext& context, const TimedPlan& plan,
                        const Preference& preference);

}  // namespace hipress::planner
