#include "requests/report_timeline.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "planner/timing/evaluation.hpp"
#include "report/path_runs.hpp"
#include "report/spans.hpp"
#include "sim/critical_path.hpp"
#include "sim/folding.hpp"
#include "sim/sensitivity.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

using casync::Picoseconds;
using Json = io::Document;

/// Limit on tasks; larger simulations take too long for a page.
constexpr double kMostTasks = 5e6;

/// Names of task kinds, by their index.
Json kinds_json() {
  Json names = Json::list();
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    names.push_back(casync::to_string(static_cast<casync::Kind>(kind)));
  }
  return names;
}

Json unit_json(std::uint32_t unit) {
  return unit == report::kNoUnit ? Json(-1) : Json(std::int64_t{unit});
}

/// Spans of a lane as columns. Each start is given as the difference to the previous start.
Json json_of(const report::Lane& lane) {
  Json start = Json::list(), length = Json::list(), kind = Json::list(), unit = Json::list(),
       last_unit = Json::list(), tasks = Json::list(), amount = Json::list(), row = Json::list(),
       critical = Json::list();
  std::int64_t before = 0;
  bool joined = false;
  for (std::size_t i = 0; i < lane.spans.size(); ++i) {
    const report::Span& span = lane.spans[i];
    const std::int64_t begin = nanoseconds(span.start);
    start.push_back(begin - before);
    before = begin;
    length.push_back(nanoseconds(span.end) - begin);
    kind.push_back(static_cast<int>(span.kind));
    unit.push_back(unit_json(span.first_unit));
    last_unit.push_back(unit_json(span.last_unit));
    joined = joined || span.first_unit != span.last_unit;
    tasks.push_back(span.tasks);
    amount.push_back(span.amount);
    row.push_back(span.row);
    if (span.critical) critical.push_back(i);
  }
  Json made = {{"name", lane.name}, {"rows", lane.rows},   {"start", start}, {"length", length},
               {"kind", kind},      {"unit", unit},        {"tasks", tasks}, {"amount", amount},
               {"row", row},        {"critical", critical}};
  if (joined) made["last_unit"] = last_unit;
  return made;
}

/// Shares by kind in the path from `begin` to its end, as in hipress-sim's `critical_path_share`.
Json shares_json(const PlanSimulation& simulated, Picoseconds begin) {
  const sim::PathTimes times =
      sim::path_times(simulated.graph, simulated.result.timeline, simulated.critical_path, begin);
  const Picoseconds length = simulated.result.iteration - begin;
  Json shares = Json::object();
  const auto add = [&](const char* name, Picoseconds time) {
    if (time.count() == 0) return;
    shares[name] = static_cast<double>(time.count()) / static_cast<double>(length.count());
  };
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    add(casync::to_string(static_cast<casync::Kind>(kind)),
        times.by_kind[static_cast<std::size_t>(kind)]);
  }
  add("wire", times.wire);
  return shares;
}

Json json_of(const report::PathRun& run) {
  Json by_kind = Json::object();
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    const Picoseconds time = run.by_kind[static_cast<std::size_t>(kind)];
    if (time.count() > 0)
      by_kind[casync::to_string(static_cast<casync::Kind>(kind))] = casync::to_seconds(time);
  }
  if (run.wire.count() > 0) by_kind["wire"] = casync::to_seconds(run.wire);
  return {{"unit", run.is_computation ? Json(-1) : Json(std::int64_t{run.unit})},
          {"start_s", casync::to_seconds(run.start)},
          {"end_s", casync::to_seconds(run.end)},
          {"length_s", casync::to_seconds(run.end - run.start)},
          {"by_kind", by_kind}};
}

}  // namespace

PageRoom PageRoom::halved() const {
  return {spans / 2,
          gradients / 2,
          std::max<std::size_t>(runs / 2, 10),
          {std::max<std::size_t>(texts.bytes / 2, 60), std::max<std::size_t>(texts.texts / 2, 5)}};
}

std::int64_t nanoseconds(Picoseconds time) { return time.count() / 1000; }

std::optional<PlanSimulation> simulate_plan(const Planned& planned, std::string& reason) {
  const Advice& advice = planned.advice;
  if (!advice.comparison.planned_s) {
    reason = "the plan could not be simulated";
    return std::nullopt;
  }
  const Problem& problem = *advice.problem;
  AffordableScenario how = affordable_scenario(problem.model, advice.found.plan, *problem.machines,
                                               advice.found.transfer_order);
  if (how.possible &&
      simulated_tasks(problem.model, advice.found.plan, *problem.machines) > kMostTasks) {
    how.possible = false;
    how.diagnostic = "the plan's graph has too many tasks for a picture";
  }
  if (!how.possible) {
    reason = how.diagnostic;
    return std::nullopt;
  }
  how.scenario.stop = {};  // the search's deadline does not apply to this simulation
  how.scenario.iterations = 1;
  PlanSimulation made = {.scenario = std::move(how.scenario),
                         .diagnostic = std::move(how.diagnostic)};
  made.graph = sim::expand(made.scenario, how.fold).graph;
  made.result = sim::simulate(made.scenario, made.graph, sim::Timelines::kRecorded);
  made.critical_path = sim::critical_path(made.graph, made.result.timeline);
  return made;
}

std::vector<Picoseconds> ends_of_units(const PlanSimulation& simulated, std::size_t units) {
  std::vector<Picoseconds> ends(units);
  for (casync::TaskId id = 0; id < simulated.graph.tasks(); ++id) {
    const casync::Task& task = simulated.graph[id];
    if (casync::resource_of(task.kind) == casync::Resource::kCompute) continue;
    Picoseconds& end = ends.at(simulated.graph.unit_of(task));
    end = std::max(end, simulated.result.timeline.end[id]);
  }
  return ends;
}

Json timeline_json(const PlanSimulation& simulated, const PageRoom& room) {
  const sim::Result& result = simulated.result;
  const std::uint32_t node =
      simulated.critical_path.empty()
          ? 0
          : simulated.graph.representative(simulated.graph[simulated.critical_path.back()].node);
  const report::NodeTimeline lanes = report::node_timeline(
      simulated.graph, result.timeline, simulated.critical_path, node, room.spans);
  Json rows = Json::list();
  for (const report::Lane& lane : lanes.lanes) rows.push_back(json_of(lane));
  return {{"iteration_s", casync::to_seconds(result.iteration)},
          {"compute_s", casync::to_seconds(result.compute)},
          {"exposed_communication_s", casync::to_seconds(result.iteration - result.compute)},
          {"forward_ns", nanoseconds(result.forward)},
          {"compute_ns", nanoseconds(result.compute)},
          {"iteration_ns", nanoseconds(result.iteration)},
          {"tasks", simulated.graph.tasks()},
          {"folded", simulated.graph.folded},
          {"node", node},
          {"gap_ns", nanoseconds(lanes.gap)},
          {"joins_units", lanes.joins_units},
          {"diagnostic", sentence(simulated.diagnostic)},
          {"kinds", kinds_json()},
          {"lanes", rows}};
}

Json sensitivity_json(const PlanSimulation& simulated, double most_tasks) {
  const std::span<const sim::Improvement> improvements = sim::improvements();
  if (static_cast<double>(improvements.size()) * simulated.graph.tasks() > most_tasks) return {};
  const std::vector<sim::Sensitivity> changes =
      sim::sensitivities(simulated.scenario, simulated.graph, simulated.result.iteration);
  Json rows = Json::list();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    rows.push_back({{"name", changes[i].name},
                    {"help", improvements[i].help},
                    {"iteration_s", casync::to_seconds(changes[i].iteration)},
                    {"change_s", casync::to_seconds(changes[i].change)}});
  }
  return rows;
}

Json path_json(const PlanSimulation& simulated, const PageRoom& room) {
  const std::vector<report::PathRun> runs =
      report::path_runs(simulated.graph, simulated.result.timeline, simulated.critical_path);
  std::vector<std::size_t> longest(runs.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::ranges::stable_sort(longest, std::greater{},
                           [&](std::size_t i) { return runs[i].end - runs[i].start; });
  if (longest.size() > room.runs) longest.resize(room.runs);
  std::ranges::sort(longest);
  Json shown = Json::list();
  Picoseconds rest = simulated.result.iteration;
  for (const std::size_t i : longest) {
    shown.push_back(json_of(runs[i]));
    rest -= runs[i].end - runs[i].start;
  }
  return {{"share", shares_json(simulated, Picoseconds{})},
          {"exposed_share", shares_json(simulated, simulated.result.compute)},
          {"runs", shown},
          {"others", runs.size() - longest.size()},
          {"others_s", casync::to_seconds(rest)}};
}

}  // namespace hipress::requests
