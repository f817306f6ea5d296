#include "sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "costs/assumed_spread.hpp"
#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "plans/plan_file.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/forecast.hpp"
#include "sim/graph_size.hpp"
#include "sim/parallel.hpp"
#include "sweep/identity.hpp"
#include "sweep/inputs.hpp"
#include "sweep/plans.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

constexpr double kMaxTasks = 1e8;  // limit on a simulated graph's tasks: about 8 GB
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// Index of a point's machine: the combination of its values of axis kGraphAxes and later axes.
std::size_t machine_of(const SweepSpec& spec, const Point& point) {
  std::size_t machine = 0;
  for (std::size_t axis = kGraphAxes; axis < kAxes; ++axis) {
    machine = machine * spec.values[axis].size() + point[axis];
  }
  return machine;
}

std::size_t machines(const SweepSpec& spec) {
  std::size_t product = 1;
  for (std::size_t axis = kGraphAxes; axis < kAxes; ++axis) product *= spec.values[axis].size();
  return product;
}

/// A task graph that several simulations share. It exists from the first to the last of them.
struct SharedGraph {
  std::uint32_t steps = 1;      // steps in the period of the plan's schedule
  Point point{};                // one of the points with this graph
  Role role = Role::kPoint;     // role at that point
  double tasks = 0;             // estimated number of simulated tasks
  std::vector<std::size_t> on;  // machines on which it is simulated
  std::unordered_map<std::size_t, std::size_t> index_on;  // index into `on`, by machine
  std::vector<std::vector<std::string>> names;            // cache keys of the outcomes, by index
  std::vector<bool> intervals;                            // percentiles are requested, by index
  std::vector<Outcome> outcomes;
  casync::Folding folding = casync::Folding::kNone;
  std::int64_t whole_tasks = 0;
  std::mutex mutex;
  std::size_t left = 0;
  std::optional<casync::TaskGraph> graph;
  casync::Plan plan;
};

bool alike(const costs::Cluster& machines) {
  return machines.nodes > 1 && difference_between_nodes(machines).empty();
}

/// True if one node of the plan can represent all nodes, so that the graph can be folded.
bool alike(const costs::Cluster& cluster, const casync::Plan& plan) {
  const costs::Cluster machines = costs::with_nodes(cluster, plan.nodes);
  if (!plan.schedule.row().sharded) return alike(machines);
  return machines.nodes > 1 && difference_between_groups(machines).empty();
}

double speedup(const Outcome& outcome, const Outcome& baseline) {
  if (outcome.iteration.count() == 0) return 1;
  return static_cast<double>(baseline.iteration.count()) /
         static_cast<double>(outcome.iteration.count());
}

/// One simulation: a graph, and an index into its machines.
struct Job {
  SharedGraph* graph = nullptr;
  std::size_t index = 0;
};

/// Graph of the plan. If the schedule's period has several steps, kPeriods periods are simulated.
casync::TaskGraph graph_of(const models::Model& model, SharedGraph& shared) {
  shared.steps = shared.plan.schedule.timetable(model).steps;
  if (shared.steps == 1) return casync::expand(model, shared.plan, shared.folding);
  return casync::expand_back_to_back(model, shared.plan, kPeriods, shared.folding);
}

/// Outcome of a step. If the period has several steps, it is their mean.
Outcome outcome_of(const SharedGraph& shared, const Result& result) {
  Outcome outcome = {.iteration = result.iteration,
                     .forward = result.forward,
                     .compute = result.compute,
                     .tasks = shared.whole_tasks};
  if (shared.steps == 1) return outcome;
  const SteadyState steady = steady_state(*shared.graph, result.timeline, kPeriods);
  outcome.iteration = steady.period / shared.steps;
  outcome.forward = steady.forward / shared.steps;
  outcome.compute = steady.compute / shared.steps;
  return outcome;
}

/// Response of an outcome; empty if its sensitivity was not computed.
std::optional<Response> response(const Outcome& outcome) {
  if (!outcome.sensitivity) return std::nullopt;
  const auto& [host_s, links_s, wire_s] = *outcome.sensitivity;
  const double time_s = casync::to_seconds(outcome.iteration);
  return Response{.time_s = time_s,
                  .host_s = host_s,
                  .links_s = links_s,
                  .compute_s = std::max(0.0, time_s - host_s - links_s),
                  .floor_s = std::min(casync::to_seconds(outcome.compute), time_s),
                  .wire_s = wire_s};
}

}  // namespace

class Sweep::State {
 public:
  State(const SweepSpec& spec, const Shard& shard, const Planning& planning,
        const Simulating& simulating);
  void require_room(unsigned jobs, std::int64_t memory_bytes) const;
  std::vector<SweepRow> run(unsigned jobs, const Progress& progress);
  std::vector<std::string> provenance() const { return identities_.provenance(); }
  SweepSize size;

 private:
  /// Source of a point's numbers: a simulation (a graph, and an index into its machines) or a
  /// cached outcome. If it has neither, the plan does not exist.
  struct Source {
    std::size_t graph = kNone;
    std::size_t index = 0;
    const Outcome* known = nullptr;
  };
  Planning with_plans_of_cache(Planning planning) const;
  bool needs_interval(Role role) const {
    return simulating_.intervals && role != Role::kUncompressed;
  }
  /// Cached outcome; null if it is missing, or lacks a sensitivity that is requested.
  const Outcome* find_known(const Point& point, Role role) const;
  std::vector<Wanted> find_unknown();
  void add_source(const Wanted& wanted);
  const Outcome* outcome(const Source& source) const;
  std::vector<std::uint32_t> graph_key(const Point& point, Role role) const;
  std::size_t find_graph(const Point& point, Role role);
  Source source(const Point& point, Role role);
  std::vector<Source>& sources(Role role) { return sources_[static_cast<std::size_t>(role)]; }
  const Source& source_of(std::int64_t index, Role role) const {
    return sources_[static_cast<std::size_t>(role)]
                   [static_cast<std::size_t>(index - points_.begin)];
  }
  double whole_tasks(const Point& point, const casync::Plan& plan) const;
  void simulate_one(const Job& job);
  Outcome simulate_on(const SharedGraph& shared, const Point& at, bool interval) const;
  void add_intervals(const Outcome& outcome, const Outcome* ddp, SweepRow& row) const;
  SweepRow row(std::int64_t index) const;

  const SweepSpec& spec_;
  const PointRange points_;
  const Simulating simulating_;
  const SweepInputs inputs_;
  const Identities identities_;
  std::vector<Source> sources_[kRoles];  // by role, then by point of the shard
  const std::vector<Wanted> unknown_;
  const SweepPlans plans_;
  std::map<std::tuple<std::uint32_t, std::string, bool>, std::size_t>
      graph_of_plan_;  // by model, fingerprint of the plan, and folding
  std::map<std::vector<std::uint32_t>, std::size_t> graph_of_point_;
  std::vector<std::unique_ptr<SharedGraph>> graphs_;
  std::vector<Point> machine_points_;  // one point per machine
};

Sweep::State::State(const SweepSpec& spec, const Shard& shard, const Planning& planning,
                    const Simulating& simulating)
    : spec_(spec),
      points_{shard.begin(spec.points()), shard.end(spec.points())},
      simulating_(simulating),
      inputs_(spec, points_),
      identities_(inputs_, planning.evaluations),
      unknown_(find_unknown()),
      plans_(inputs_, unknown_, with_plans_of_cache(planning)) {
  machine_points_.resize(machines(spec));
  for (const Wanted& wanted : unknown_) add_source(wanted);
  size.points = points_.end - points_.begin;
  size.planned = static_cast<std::int64_t>(plans_.made());
  size.graphs = static_cast<std::int64_t>(graphs_.size());
  for (const auto& graph : graphs_) {
    size.simulations += static_cast<std::int64_t>(graph->on.size());
    size.tasks += graph->tasks * static_cast<double>(graph->on.size());
  }
}

Planning Sweep::State::with_plans_of_cache(Planning planning) const {
  if (simulating_.cache != nullptr && identities_.why_none().empty()) {
    planning.find = [this](const Point& point) {
      return simulating_.cache->find_plan(identities_.plan(point));
    };
    planning.keep = [this](const Point& point, const std::string& text) {
      simulating_.cache->put_plan(identities_.plan(point), text);
    };
  }
  return planning;
}

const Outcome* Sweep::State::find_known(const Point& point, Role role) const {
  const Outcome* const found = simulating_.cache->find(identities_.outcome(point, role));
  if (found == nullptr) return nullptr;
  if (!found->possible) return role == Role::kDdp ? found : nullptr;  // only plan ddp may not exist
  return found->sensitivity || !needs_interval(role) ? found : nullptr;
}

/// Sets the sources that the cache knows. Returns the remaining ones.
std::vector<Wanted> Sweep::State::find_unknown() {
  const bool looks = simulating_.cache != nullptr && identities_.why_none().empty();
  std::vector<Wanted> unknown;
  for (std::int64_t index = points_.begin; index < points_.end; ++index) {
    const Point at = point(spec_, index);
    bool all_known = true;
    for (const Role role : kAllRoles) {
      Source& source = sources(role).emplace_back();
      if (looks) source.known = find_known(at, role);
      if (source.known != nullptr) continue;
      all_known = false;
      unknown.push_back({index, role});
    }
    if (all_known) ++size.known;
  }
  return unknown;
}

void Sweep::State::add_source(const Wanted& wanted) {
  const auto& [index, role] = wanted;
  const Point at = point(spec_, index);
  machine_points_[machine_of(spec_, at)] = at;
  const bool keeps = simulating_.cache != nullptr && identities_.why_none().empty();
  if (role == Role::kDdp && !plans_.is_possible(at, role)) {
    if (keeps) simulating_.cache->put(identities_.outcome(at, role), {.possible = false});
    return;
  }
  const Source found = source(at, role);
  sources(role)[static_cast<std::size_t>(index - points_.begin)] = found;
  SharedGraph& graph = *graphs_[found.graph];
  if (needs_interval(role)) graph.intervals[found.index] = true;
  if (!keeps) return;
  std::vector<std::string>& names = graph.names[found.index];
  std::string name = identities_.outcome(at, role);
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

const Outcome* Sweep::State::outcome(const Source& source) const {
  if (source.graph != kNone) return &graphs_[source.graph]->outcomes[source.index];
  return source.known != nullptr && source.known->possible ? source.known : nullptr;
}

/// Number of tasks of the whole graph. Throws InputError if the plan does not fit the model. The
/// error is at the spec's line of the plan or, if the plan is a default, of the topology.
double Sweep::State::whole_tasks(const Point& point, const casync::Plan& plan) const {
  try {
    return casync::whole_tasks(inputs_.model(point), plan);
  } catch (const std::invalid_argument& error) {
    const Axis axis = inputs_.value(point, kPlan).line > 0 ? kPlan : kTopology;
    spec_.fail(axis, inputs_.value(point, axis), error.what());
  }
}

/// Key of a graph. Points with equal keys have the same graph.
std::vector<std::uint32_t> Sweep::State::graph_key(const Point& point, Role role) const {
  std::vector<std::uint32_t> key = plans_.key(point, role);
  const costs::Cluster& machines = inputs_.base_cluster(point);
  key.push_back(machines.gpus_per_node);
  key.push_back(costs::rails(machines));
  key.push_back(alike(machines) ? 1 : 0);
  key.push_back(difference_between_groups(machines).empty() ? 1 : 0);
  return key;
}

/// Index of the graph of a point's role. Points with equal plans share a graph. If nodes are alike
/// in only some of the clusters, they share two: one folded, one whole.
std::size_t Sweep::State::find_graph(const Point& point, Role role) {
  const std::vector<std::uint32_t> key = graph_key(point, role);
  const auto known = graph_of_point_.find(key);
  if (known != graph_of_point_.end()) return known->second;

  const models::Model& model = inputs_.model(point);
  const casync::Plan plan = plans_.resolve(point, role).plan;
  plans_.require_codecs(point, role, plan);
  const double whole = whole_tasks(point, plan);
  const bool folds = alike(inputs_.base_cluster(point), plan) &&
                     casync::foldable(model, plan).kind == casync::Foldability::kExact;
  const bool repeats = !plan.schedule.timetable(model).is_uniform();
  const double tasks = whole * (repeats ? kPeriods : 1) / (folds ? plan.nodes : 1);
  if (tasks > kMaxTasks) {
    spec_.fail(
        kNodes, inputs_.value(point, kNodes),
        fmt::format("model {} with plan {} makes a graph of about {:.2g} tasks, more than {:g};"
                    " give fewer nodes or partitions",
                    inputs_.value(point, kModel).text, plans_.name(point, role), tasks, kMaxTasks));
  }
  const auto [entry, added] = graph_of_plan_.try_emplace(
      {inputs_.number_of_model(point), plans::plan_fingerprint(model, plan), folds},
      graphs_.size());
  if (added) {
    auto graph = std::make_unique<SharedGraph>();
    graph->point = point;
    graph->role = role;
    graph->tasks = tasks;
    graph->folding = folds ? casync::Folding::kFolded : casync::Folding::kNone;
    graphs_.push_back(std::move(graph));
  }
  return graph_of_point_[key] = entry->second;
}

Sweep::State::Source Sweep::State::source(const Point& point, Role role) {
  const std::size_t index = find_graph(point, role);
  SharedGraph& graph = *graphs_[index];
  const std::size_t machine = machine_of(spec_, point);
  const auto [entry, added] = graph.index_on.try_emplace(machine, graph.on.size());
  if (added) {
    graph.on.push_back(machine);
    graph.names.emplace_back();
    graph.intervals.push_back(false);
  }
  return {.graph = index, .index = entry->second};
}

void Sweep::State::simulate_one(const Job& job) {
  SharedGraph& shared = *job.graph;
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.graph) {
      shared.plan = plans_.resolve(shared.point, shared.role).plan;
      shared.graph = graph_of(inputs_.model(shared.point), shared);
      shared.whole_tasks = casync::whole_tasks(*shared.graph);
    }
  }
  Point at = shared.point;
  const Point& machine = machine_points_[shared.on[job.index]];
  std::copy(machine.begin() + kGraphAxes, machine.end(), at.begin() + kGraphAxes);
  try {
    shared.outcomes[job.index] = simulate_on(shared, at, shared.intervals[job.index]);
  } catch (const io::InputError& error) {
    throw io::InputError(spec_.file, 0, inputs_.describe(at) + ": " + error.what());
  }
  for (const std::string& name : shared.names[job.index]) {
    simulating_.cache->put(name, shared.outcomes[job.index]);
  }
  const std::lock_guard lock(shared.mutex);
  if (--shared.left == 0) shared.graph.reset();
}

Outcome Sweep::State::simulate_on(const SharedGraph& shared, const Point& at, bool interval) const {
  const auto simulate_with = [&](const costs::Profile& profile, const costs::Cluster& cluster) {
    const Result result =
        simulate(*shared.graph, TaskCosts(profile, shared.plan.algorithms), cluster,
                 {.network = parse_network(inputs_.value(at, kNetwork).text),
                  .record_timeline = shared.steps > 1,
                  .stop = simulating_.stop});
    return outcome_of(shared, result);
  };
  const costs::Profile& profile = inputs_.profile(at);
  const costs::Cluster cluster = costs::with_nodes(inputs_.cluster(at), shared.plan.nodes);
  Outcome outcome = simulate_with(profile, cluster);
  if (!interval) return outcome;
  const TimeOf time_s = [&](const costs::Profile& costs, const costs::Cluster& machines) {
    return std::optional(casync::to_seconds(simulate_with(costs, machines).iteration));
  };
  const Response response = *respond(casync::to_seconds(outcome.iteration),
                                     casync::to_seconds(outcome.compute), profile, cluster, time_s);
  outcome.sensitivity = Sensitivity{response.host_s, response.links_s, response.wire_s};
  return outcome;
}

/// Adds percentiles of the iteration time, and of the speed-up over ddp, which is 1 / (1 - saving).
void Sweep::State::add_intervals(const Outcome& outcome, const Outcome* ddp, SweepRow& row) const {
  const std::optional<Response> of_point = response(outcome);
  if (!simulating_.intervals || !of_point) return;
  const costs::Spread spread = costs::spread_of(inputs_.profile(row.point));
  const Interval times = interval(*of_point, spread);
  row.interval_s = Percentiles{times.p10_s, times.p90_s};
  const std::optional<Response> of_ddp = ddp ? response(*ddp) : std::nullopt;
  if (!of_ddp) return;
  const Saving saved = saving(*of_point, *of_ddp, spread);
  row.speedup_over_ddp_interval = Percentiles{1 / (1 - saved.p10), 1 / (1 - saved.p90)};
}

SweepRow Sweep::State::row(std::int64_t index) const {
  const Outcome& outcome = *this->outcome(source_of(index, Role::kPoint));
  const Outcome* const ddp = this->outcome(source_of(index, Role::kDdp));
  SweepRow row;
  row.point = point(spec_, index);
  const costs::LinkCosts links = inputs_.link(row.point);
  row.bandwidth = links.bandwidth;
  row.latency_s = links.latency_s;
  row.overhead_s = links.overhead_s;
  row.iteration = outcome.iteration;
  row.compute = outcome.compute;
  row.synchronisation = outcome.iteration - outcome.forward;
  row.speedup = speedup(outcome, *this->outcome(source_of(index, Role::kUncompressed)));
  if (ddp != nullptr) row.speedup_over_ddp = speedup(outcome, *ddp);
  row.tasks = outcome.tasks;
  add_intervals(outcome, ddp, row);
  return row;
}

std::vector<SweepRow> Sweep::State::run(unsigned jobs, const Progress& progress) {
  std::vector<Job> queue;
  for (const auto& graph : graphs_) {
    graph->outcomes.resize(graph->on.size());
    graph->left = graph->on.size();
    for (std::size_t i = 0; i < graph->on.size(); ++i) queue.push_back({graph.get(), i});
  }
  std::mutex mutex;
  std::int64_t done = 0;
  run_parallel(queue.size(), jobs, [&](std::size_t i, unsigned) {
    simulate_one(queue[i]);
    const std::lock_guard lock(mutex);
    if (progress) progress(++done, static_cast<std::int64_t>(queue.size()));
  });
  std::vector<SweepRow> rows(static_cast<std::size_t>(size.points));
  run_parallel(rows.size(), jobs, [&](std::size_t i, unsigned) {
    rows[i] = row(points_.begin + static_cast<std::int64_t>(i));
  });
  return rows;
}

/// Concurrent simulations of a graph share it: the first needs memory for the graph and for itself,
/// each further one only for itself.
void Sweep::State::require_room(unsigned jobs, std::int64_t memory_bytes) const {
  jobs = std::max(jobs, 1u);
  std::vector<double> added;
  const SharedGraph* largest = nullptr;
  for (const auto& graph : graphs_) {
    if (!largest || graph->tasks > largest->tasks) largest = graph.get();
    const double alone = bytes_of_simulation(graph->tasks);
    added.push_back(bytes_of_graph(graph->tasks) + alone);
    added.insert(added.end(), std::min<std::size_t>(jobs, graph->on.size()) - 1, alone);
  }
  std::sort(added.begin(), added.end(), std::greater<>());
  const std::size_t together = std::min<std::size_t>(jobs, added.size());
  const double bytes =
      std::accumulate(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(together), 0.0);
  if (bytes <= static_cast<double>(memory_bytes)) return;
  throw io::InputError(
      spec_.file, 0,
      fmt::format("{} at a time need{} about {} of memory, and {} are available; the largest graph,"
                  " of {}, has about {:.2g} tasks; give {}fewer nodes or partitions",
                  together == 1 ? "one simulation" : fmt::format("{} simulations", together),
                  together == 1 ? "s" : "", io::format_size(static_cast<std::int64_t>(bytes), 3),
                  io::format_size(memory_bytes, 3), inputs_.describe(largest->point),
                  largest->tasks, together == 1 ? "" : "fewer `jobs`, "));
}

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  try {
    if (slash == std::string_view::npos) throw io::InputError("");
    Shard shard;
    shard.count = io::parse_integer(text.substr(slash + 1), "the number of shards", 1, 1'000'000);
    shard.index = io::parse_integer(text.substr(0, slash), "the shard", 1, shard.count);
    return shard;
  } catch (const io::InputError& error) {
    throw io::InputError(fmt::format(
        "`shard` must be I/M with 1 <= I <= M, such as 3/8 for the third of eight parts, got {}",
        io::quote(text)));
  }
}

Sweep::Sweep(const SweepSpec& spec, const Shard& shard, const Planning& planning,
             const Simulating& simulating)
    : state_(std::make_unique<State>(spec, shard, planning, simulating)) {}
Sweep::~Sweep() = default;
const SweepSize& Sweep::size() const { return state_->size; }
std::vector<std::string> Sweep::provenance() const { return state_->provenance(); }
void Sweep::require_room(unsigned jobs, std::int64_t memory_bytes) const {
  state_->require_room(jobs, memory_bytes);
}
std::vector<SweepRow> Sweep::run(unsigned jobs, const Progress& progress) {
  return state_->run(jobs, progress);
}

std::vector<std::string_view> axes_without_effect(const SweepSpec& spec,
                                                  const std::vector<SweepRow>& rows) {
  std::vector<std::string_view> names;
  std::size_t stride = 1;  // distance between the rows of adjacent values
  for (std::size_t axis = kAxes; axis-- > 0;) {
    const std::size_t length = spec.values[axis].size();
    bool matters = length == 1;
    for (std::size_t i = 0; i < rows.size() && !matters; ++i) {
      const SweepRow& first = rows[i - rows[i].point[axis] * stride];
      matters = rows[i].iteration != first.iteration || rows[i].compute != first.compute ||
                rows[i].synchronisation != first.synchronisation || rows[i].tasks != first.tasks;
    }
    if (!matters) names.insert(names.begin(), axes()[axis].name);
    stride *= length;
  }
  return names;
}

}  // namespace hipress::sweep
