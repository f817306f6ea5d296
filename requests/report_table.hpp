#pragma once

#include "requests/report_timeline.hpp"

namespace hipress::requests {

/// The plan as a table: a column for each member, and an entry in it for each gradient, in input
/// order. Without room for all gradients, it has as many of the largest as fit; long names are cut.
/// `simulated` is of the plan; null: the table does not say when gradients are synchronised.
io::Document plan_table_json(const Planned& planned, const PlanSimulation* simulated,
                             const PageRoom& room);

}  // namespace hipress::requests
