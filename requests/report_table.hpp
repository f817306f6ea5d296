#pragma once

#include "requests/report_timeline.hpp"

namespace hipress::requests {

/// The plan as a table: one column per member, with one entry per gradient in input order. If there
/// is no room for all gradients, it keeps the largest; long names are cut. `simulated` is the
/// plan's simulation; null: the table has no synchronisation times.
io::Document plan_table_json(const Planned& planned, const PlanSimulation* simulated,
                             const PageRoom& room);

}  // namespace hipress::requests
