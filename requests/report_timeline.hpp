#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page.hpp"
#include "requests/planned.hpp"
#include "sim/scenario.hpp"

/// Parts of a plan's page that come from its simulation.
namespace hipress::requests {

/// Limits on the contents of a page.
struct PageRoom {
  std::size_t spans = 4000;      ///< spans of the timeline (report/spans.hpp)
  std::size_t gradients = 4000;  ///< rows of the table
  std::size_t runs = 120;        ///< runs of the critical path (report/path_runs.hpp)
  report::TextRoom texts = {};   ///< lengths of names, notes and sentences
  PageRoom halved() const;
};

/// One more simulation of the plan's iteration, with its timeline.
struct PlanSimulation {
  sim::Scenario scenario;
  casync::TaskGraph graph = {};
  sim::Result result = {};
  std::vector<casync::TaskId> critical_path = {};
  std::string diagnostic = {};  ///< note about approximations; usually empty
};

/// Simulates the plan once more. Returns nullopt, and sets `reason`, if the graph takes too much
/// time or memory.
std::optional<PlanSimulation> simulate_plan(const Planned& planned, std::string& reason);

/// Time in whole nanoseconds, the resolution of the page's pictures.
std::int64_t nanoseconds(casync::Picoseconds time);

/// Gain from 10 % more of each resource, as `hipress-sim` reports it with `sensitivity`. Null if
/// the simulations for it would have more than `most_tasks` tasks in total.
io::Document sensitivity_json(const PlanSimulation& simulated, double most_tasks);

/// Lanes (report/spans.hpp) of the node that ends last. Their spans are given as columns.
io::Document timeline_json(const PlanSimulation& simulated, const PageRoom& room);

/// Shares of the critical path by kind of task, and its longest runs (report/path_runs.hpp).
io::Document path_json(const PlanSimulation& simulated, const PageRoom& room);

/// Time at which each unit is synchronised on every node; 0 for units without tasks.
std::vector<casync::Picoseconds> ends_of_units(const PlanSimulation& simulated, std::size_t units);

}  // namespace hipress::requests
