#include "requests/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "casync/layout.hpp"
#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "io/error.hpp"
#include "io/version.hpp"
#include "planner/timing/evaluation.hpp"
#include "plans/plan_builder.hpp"
#include "report/page.hpp"
#include "report/path_runs.hpp"
#include "report/spans.hpp"
#include "sim/critical_path.hpp"
#include "sim/folding.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

using casync::Picoseconds;
using Json = io::Document;

/// What a page has room for.
struct Room {
  std::size_t spans = 4000, gradients = 4000, runs = 120;
  Room halved() const { return {spans / 2, gradients / 2, std::max<std::size_t>(runs / 2, 10)}; }
};

/// More take longer to simulate than a page is worth.
constexpr double kMostTasks = 5e6;

/// The plan's iteration, simulated once more with its timeline.
struct Simulation {
  sim::Scenario scenario;
  casync::TaskGraph graph;
  sim::Result result;
  std::vector<casync::TaskId> critical_path;
  std::string diagnostic;  ///< what was given up for it; mostly empty
};

/// None, with the reason, for a graph that takes too long or too much memory.
std::optional<Simulation> simulate(const Planned& planned, std::string& reason) {
  const Advice& advice = planned.advice;
  if (!advice.comparison.planned_s) {
    reason = "the plan could not be simulated";
    return std::nullopt;
  }
  const Problem& problem = *advice.problem;
  AffordableScenario how = affordable_scenario(problem.model, advice.found.plan, *problem.machines,
                                               advice.found.transfer_order);
  if (how.possible && simulated_tasks(problem.model, advice.found.plan, *problem.machines) > kMostTasks) {
    how.possible = false;
    how.diagnostic = "the plan's graph has too many tasks for a picture";
  }
  if (!how.possible) {
    reason = how.diagnostic;
    return std::nullopt;
  }
  how.scenario.stop = {};  // the search's end is not this simulation's
  Simulation made = {.scenario = std::move(how.scenario), .diagnostic = std::move(how.diagnostic)};
  made.graph = sim::expand(made.scenario, how.fold).graph;
  made.result = sim::simulate(made.scenario, made.graph, sim::Timelines::kRecorded);
  made.critical_path = sim::critical_path(made.graph, made.result.timeline);
  return made;
}

std::int64_t nanoseconds(Picoseconds time) { return time.count() / 1000; }

/// The kinds of tasks that pages name, by their place.
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

/// A lane's spans as columns, each start as what it is after the one before.
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

/// When each unit is synchronised on every node; 0 of what has no task.
std::vector<Picoseconds> ends_of_units(const Simulation& simulated, std::size_t units) {
  std::vector<Picoseconds> ends(units);
  for (casync::TaskId id = 0; id < simulated.graph.tasks(); ++id) {
    const casync::Task& task = simulated.graph[id];
    if (casync::resource_of(task.kind) == casync::Resource::kCompute) continue;
    Picoseconds& end = ends.at(simulated.graph.unit_of(task));
    end = std::max(end, simulated.result.timeline.end[id]);
  }
  return ends;
}

Json timeline_json(const Simulation& simulated, const Room& room) {
  const sim::Result& result = simulated.result;
  const std::uint32_t node =
      simulated.critical_path.empty() ? 0 : simulated.graph[simulated.critical_path.back()].node;
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

/// Shares of the path from `begin` to its end, by kind, as hipress-sim's `critical_path_share`.
Json shares_json(const Simulation& simulated, Picoseconds begin) {
  const sim::PathTimes times = sim::path_times(simulated.graph, simulated.result.timeline,
                                               simulated.critical_path, begin);
  const Picoseconds length = simulated.result.iteration - begin;
  Json shares = Json::object();
  const auto add = [&](const char* name, Picoseconds time) {
    if (time.count() == 0) return;
    shares[name] = static_cast<double>(time.count()) / static_cast<double>(length.count());
  };
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    add(casync::to_string(static_cast<casync::Kind>(kind)), times.by_kind[static_cast<std::size_t>(kind)]);
  }
  add("wire", times.wire);
  return shares;
}

Json json_of(const report::PathRun& run) {
  Json by_kind = Json::object();
  for (int kind = 0; kind < casync::kKinds; ++kind) {
    const Picoseconds time = run.by_kind[static_cast<std::size_t>(kind)];
    if (time.count() > 0) by_kind[casync::to_string(static_cast<casync::Kind>(kind))] = casync::to_seconds(time);
  }
  if (run.wire.count() > 0) by_kind["wire"] = casync::to_seconds(run.wire);
  return {{"unit", run.is_computation ? Json(-1) : Json(std::int64_t{run.unit})},
          {"start_s", casync::to_seconds(run.start)},
          {"end_s", casync::to_seconds(run.end)},
          {"length_s", casync::to_seconds(run.end - run.start)},
          {"by_kind", by_kind}};
}

/// The path's longest runs, in order of time, and what the others take together.
Json path_json(const Simulation& simulated, const Room& room) {
  const std::vector<report::PathRun> runs =
      report::path_runs(simulated.graph, simulated.result.timeline, simulated.critical_path);
  std::vector<std::size_t> longest(runs.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::ranges::stable_sort(longest, std::greater{}, [&](std::size_t i) { return runs[i].end - runs[i].start; });
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

/// The gradients in the table: all, or the largest, in input order.
std::vector<std::uint32_t> shown_gradients(const models::Model& model, const Room& room) {
  std::vector<std::uint32_t> shown(model.gradients.size());
  std::iota(shown.begin(), shown.end(), 0u);
  if (shown.size() <= room.gradients) return shown;
  std::ranges::stable_sort(shown, std::greater{}, [&](std::uint32_t g) { return model.gradients[g].elements; });
  shown.resize(room.gradients);
  std::ranges::sort(shown);
  return shown;
}

/// Place of a text in a list that grows by what is new.
class Words {
 public:
  int place(const std::string& word) {
    const auto found = std::ranges::find(words_, word);
    if (found != words_.end()) return static_cast<int>(found - words_.begin());
    words_.push_back(word);
    return static_cast<int>(words_.size()) - 1;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
};

/// The plan as columns, one entry a gradient.
class PlanTable {
 public:
  PlanTable(const Planned& planned, const std::vector<std::uint32_t>& shown)
      : model_(planned.advice.problem->model),
        plan_(planned.advice.found.plan),
        layout_(casync::make_layout(model_, plan_)),
        shown_(shown) {}

  /// `simulated` may be null: then nothing is said of times.
  Json json(const Simulation* simulated) const {
    const std::vector<std::uint32_t> unit_of = units();
    std::vector<std::string> names;
    Words algorithms, dtypes;
    Json elements = Json::list(), algorithm = Json::list(), dtype = Json::list(), partitions = Json::list(),
         unit = Json::list(), ready = Json::list();
    for (const std::uint32_t g : shown_) {
      const models::Gradient& gradient = model_.gradients[g];
      const casync::Decision& decision = plan_.decisions[g];
      names.push_back(gradient.name);
      elements.push_back(gradient.elements);
      const casync::Algorithm* const by = casync::algorithm_at(plan_.algorithms, decision.algorithm);
      algorithm.push_back(algorithms.place(by == nullptr ? "none" : by->name));
      dtype.push_back(dtypes.place(models::to_string(gradient.dtype)));
      partitions.push_back(decision.partitions);
      unit.push_back(std::int64_t{unit_of[g]});
      ready.push_back(nanoseconds(casync::from_seconds(gradient.ready_s)));
    }
    Json made = {{"all", model_.gradients.size()},
                 {"index", shown_.size() == model_.gradients.size() ? Json() : indices()},
                 {"names", report::front_coded(names)},
                 {"elements", elements},
                 {"algorithms", algorithms.words()},
                 {"algorithm", algorithm},
                 {"dtypes", dtypes.words()},
                 {"dtype", dtype},
                 {"K", partitions},
                 {"unit", unit},
                 {"ready_ns", ready},
                 {"groups", groups()}};
    if (simulated != nullptr) made["done_ns"] = done(*simulated, unit_of);
    return made;
  }

 private:
  Json indices() const {
    Json list = Json::list();
    for (const std::uint32_t g : shown_) list.push_back(std::int64_t{g});
    return list;
  }

  /// Per gradient, the unit that it is synchronised in: itself, or its bulk group.
  std::vector<std::uint32_t> units() const {
    std::vector<std::uint32_t> unit_of(model_.gradients.size());
    std::iota(unit_of.begin(), unit_of.end(), 0u);
    for (std::uint32_t unit = 0; unit < layout_.units.size(); ++unit) {
      if (!layout_.is_group(unit)) continue;
      for (const std::uint32_t member : layout_.units[unit].members) unit_of[member] = unit;
    }
    return unit_of;
  }

  /// The bulk groups' names; the first has the number of gradients as its unit.
  Json groups() const {
    Json names = Json::list();
    for (std::uint32_t unit = 0; unit < layout_.units.size(); ++unit) {
      if (layout_.is_group(unit)) names.push_back(layout_.units[unit].name);
    }
    return names;
  }

  Json done(const Simulation& simulated, const std::vector<std::uint32_t>& unit_of) const {
    const std::vector<Picoseconds> ends = ends_of_units(simulated, layout_.units.size());
    Json list = Json::list();
    for (const std::uint32_t g : shown_) list.push_back(nanoseconds(ends[unit_of[g]]));
    return list;
  }

  const models::Model& model_;
  const casync::Plan& plan_;
  const casync::Layout layout_;
  const std::vector<std::uint32_t>& shown_;
};

Json model_json(const models::Model& model) {
  return {{"name", model.name},
          {"source", model.source},
          {"gradients", model.gradients.size()},
          {"elements", models::total_elements(model)},
          {"batch", model.batch},
          {"unit", model.unit},
          {"forward_s", model.forward_s},
          {"backward_s", models::backward_s(model)}};
}

Json profile_json(const costs::Profile& profile) {
  std::size_t samples = 0;
  for (const costs::Profile::Series& series : profile.samples) samples += series.samples.size();
  const costs::Spread spread = costs::spread_of(profile);
  Json notes = Json::list();
  for (const std::string& note : profile.notes) notes.push_back(sentence(note));
  return {{"name", profile.name},
          {"origin", costs::origin_of(profile)},
          {"source", profile.source},
          {"hardware", profile.hardware},
          {"device", profile.device},
          {"fingerprint", profile.fingerprint},
          {"shared_host", profile.shared_host},
          {"samples", samples},
          {"spread_measured", profile.spread.has_value()},
          {"spread",
           {{"host", spread.host},
            {"links", spread.links},
            {"compute", spread.compute},
            {"model", spread.model}}},
          {"notes", notes}};
}

/// What was planned, and on what it rests.
Json about_json(const Planned& planned) {
  const Advice& advice = planned.advice;
  const Problem& problem = *advice.problem;
  const Request& request = planned.prepared.request;
  return {{"tool", io::version()},
          {"nodes", advice.found.plan.nodes},
          {"gpus_per_node", problem.machines->cluster.gpus_per_node},
          {"network", request.network},
          {"transfer_order", casync::to_string(advice.found.transfer_order)},
          {"search", planned.prepared.searches() ? Json(request.search_name()) : Json()},
          {"output", planned.request.output},
          {"machines", sentence(costs::describe_machines(planned.prepared.profile, problem.machines->cluster,
                                                         problem.model))},
          {"profile_given", !request.machines.profile.empty()},
          {"model", model_json(problem.model)},
          {"profile", profile_json(planned.prepared.profile)}};
}

/// Of document() what the page shows: not what `explain` and `compare` say of every gradient.
Json plan_json(const Planned& planned) {
  const Json whole = document(planned);
  Json shown = Json::object();
  for (const Json::Member& member : *whole.members()) {
    if (member.name != "explain" && member.name != "compare") shown[member.name] = member.value;
  }
  return shown;
}

std::string title_of(const Planned& planned) {
  const models::Model& model = planned.advice.problem->model;
  return fmt::format("{} on {} nodes", model.name.empty() ? "A model" : model.name,
                     planned.advice.found.plan.nodes);
}

}  // namespace

std::string report_page(const Planned& planned, const std::vector<std::string>& said) {
  std::string reason;
  const std::optional<Simulation> simulated = simulate(planned, reason);
  Json data = {{"plan", plan_json(planned)}, {"about", about_json(planned)}, {"said", Json::list()}};
  for (const std::string& one : said) data["said"].push_back(sentence(one));
  const report::Headline headline = {.title = title_of(planned),
                                     .answer = report::answer_sentence(data["plan"]),
                                     .details = sentence(planned.advice.verdict.sentence)};
  for (Room room;; room = room.halved()) {
    const std::vector<std::uint32_t> shown = shown_gradients(planned.advice.problem->model, room);
    data["gradients"] = PlanTable(planned, shown).json(simulated ? &*simulated : nullptr);
    data["timeline"] = simulated ? timeline_json(*simulated, room) : Json();
    data["critical_path"] = simulated ? path_json(*simulated, room) : Json();
    data["no_timeline"] = sentence(reason);
    std::string made = report::page(headline, data);
    if (made.size() <= kMostPageBytes || room.spans < 10) return made;
  }
}

void refuse_report(const PlanRequest& request) {
  if (request.report.empty()) return;
  if (request.job == "broadcast") {
    throw io::InputError("`report` is of plans that average gradients: leave it out, or take `job` mean");
  }
  if (request.is_of_schedules()) {
    throw io::InputError(
        "`report` is of one plan of schedule ddp: leave out `report`, or `schedule`, `gpu_memory` and "
        "`required_bandwidth`");
  }
}

}  // namespace hipress::requests
