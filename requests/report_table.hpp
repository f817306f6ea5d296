#pragma once

#include "requests/report_timeline.hpp"

namespace hipress::requests {

/// The plan as a table of columns, each with one entry per gradient in input order. If there is no
/// room for all gradients, the largest ones are kept; long names are cut. `simulated` is the plan's
/// simulation. If it is null, the table has no synchronisation times.
io::Document plan_table_json(const Planned& planned, const PlanSimulation* simulated,
                             const PageRoom& room);

}  // namespace hipress::requests
