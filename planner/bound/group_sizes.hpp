#pragma once

#include <vector>

#include "models/model.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/choices/choices.hpp"

namespace hipress::planner {

/// Largest possible number of members of a bulk group that contains a given gradient; 0: it cannot
/// be in any group. Returns one table per form (raw, then the algorithms of the choices), with one
/// entry per gradient in the order of backward. Forms without stages all have the same table.
std::vector<std::vector<double>> group_sizes(const models::Model& model, const Choices& choices,
                                             const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
