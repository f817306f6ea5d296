#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page.hpp"
#include "requests/planned.hpp"
#include "sim/scenario.hpp"

/// What the page of a plan shows of its simulation.
namespace hipress::requests {

/// What a page has room for.
struct PageRoom {
  std::size_t spans = 4000;      ///< of the timeline (report/spans.hpp)
  std::size_t gradients = 4000;  ///< in the table
  std::size_t runs = 120;        ///< of the critical path (report/path_runs.hpp)
  report::TextRoom texts = {};   ///< for names, notes and sentences
  PageRoom halved() const;
};

/// The plan's iteration, simulated once more with its timeline.
struct PlanSimulation {
  sim::Scenario scenario;
  casync::TaskGraph graph = {};
  sim::Result result = {};
  std::vector<casync::TaskId> critical_path = {};
  std::string diagnostic = {};  ///< what was given up for it; mostly empty
};

/// None, with the reason, for a graph that takes too long or too much memory.
std::optional<PlanSimulation> simulate_plan(const Planned& planned, std::string& reason);

/// Whole nanoseconds, which pictures are drawn to.
std::int64_t nanoseconds(casync::Picoseconds time);

/// What 10 % more of anything would bring, as `hipress-sim` says it with `sensitivity`; null where
/// simulations of more than `most_tasks` tasks together would be needed.
io::Document sensitivity_json(const PlanSimulation& simulated, double most_tasks);

/// The lanes of the node where the iteration ends last, spans as columns.
io::Document timeline_json(const PlanSimulation& simulated, const PageRoom& room);

/// The critical path's shares by kind, and its longest runs.
io::Document path_json(const PlanSimulation& simulated, const PageRoom& room);

/// When each unit is synchronised on every node; 0 of what has no task.
std::vector<casync::Picoseconds> ends_of_units(const PlanSimulation& simulated, std::size_t units);

}  // namespace hipress::requests
