#pragma once

#include "requests/report_timeline.hpp"

namespace hipress::requests {

/// The plan as a table, a column a member and an entry a gradient: all gradients, or as many of the
/// largest as there is room for, in input order. `simulated` is of the plan; null: nothing is said
/// of when gradients are synchronised.
io::Document plan_table_json(const Planned& planned, const PlanSimulation* simulated,
                             const PageRoom& room);

}  // namespace hipress::requests
