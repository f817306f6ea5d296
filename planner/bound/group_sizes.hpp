#pragma once

#include <vector>

#include "models/model.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/choices/choices.hpp"

namespace hipress::planner {

/// Per form (raw, then the algorithms of the choices), of which groups are, and per place in the
/// order of backward: how many members the largest bulk group can have that the gradient can be in;
/// 0: none. All forms without stages have one table.
std::vector<std::vector<double>> group_sizes(const models::Model& model, const Choices& choices,
                                             const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
