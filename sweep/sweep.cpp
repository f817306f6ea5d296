#include "sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "io/quantity.hpp"
#include "models/time_options.hpp"
#include "plans/plan_file.hpp"
#include "sim/folding.hpp"
#include "sim/graph_size.hpp"
#include "sim/parallel.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

constexpr double kMaxTasks = 1e8;  // of one graph as it is simulated: some 8 GB
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// The axes that decide what a point's graph is simulated on, as one number.
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

/// What is simulated at a point: its own plan, or a baseline that it is compared with.
enum class Role : std::uint8_t { kPoint, kUncompressed, kDdp };
constexpr std::string_view kDdpName = "ddp";

struct Outcome {
  Picoseconds iteration{};
  Picoseconds forward{};
  Picoseconds compute{};
};

/// A task graph that several simulations share; it exists from the first to the last of them.
struct SharedGraph {
  Point point{};                                          // one of those that it belongs to
  Role role = Role::kPoint;                               // what it is at that point
  double tasks = 0;                                       // that are simulated, as estimated
  std::vector<std::size_t> on;                            // the machines that it is simulated on
  std::unordered_map<std::size_t, std::size_t> index_on;  // of each of them in `on`
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

/// How often this one would run while the other does once.
double speedup(const Outcome& outcome, const Outcome& baseline) {
  if (outcome.iteration.count() == 0) return 1;
  return static_cast<double>(baseline.iteration.count()) /
         static_cast<double>(outcome.iteration.count());
}

/// One simulation: the graph, and which of its machines.
struct Job {
  SharedGraph* graph = nullptr;
  std::size_t index = 0;
};

}  // namespace

class Sweep::State {
 public:
  State(const SweepSpec& spec, const Shard& shard, const Planning& planning);
  void require_room(unsigned jobs, std::int64_t memory_bytes) const;
  std::vector<SweepRow> run(unsigned jobs, const Progress& progress);
  SweepSize size;

 private:
  /// Where a point's numbers are found: a graph, and the place of the machine among the graph's.
  struct Source {
    std::size_t graph = kNone;
    std::size_t index = 0;
  };
  /// What a plan that is made depends on: the values of some axes, and its name.
  struct PlanKey {
    std::vector<std::uint32_t> values;
    std::string_view name;
    auto operator<=>(const PlanKey&) const = default;
  };
  /// None where there is no such plan, or what was wrong with it.
  struct Planned {
    Point point{};
    std::optional<plans::ResolvedPlan> plan;
    std::string complaint;
  };

  const AxisValue& value(const Point& point, Axis axis) const {
    return spec_.values[axis][point[axis]];
  }
  /// Per value of the model's axis, each value of the compute time's.
  std::uint32_t place_of_model(const Point& point) const {
    const auto times = static_cast<std::uint32_t>(spec_.values[kComputeTime].size());
    return point[kModel] * times + point[kComputeTime];
  }
  const models::Model& model_of(const Point& point) const { return models_[place_of_model(point)]; }
  void load();
  void load_models();
  const planner::NamedPlanRow* planned_name(const Point& point, Role role) const;
  PlanKey plan_key(const Point& point, const planner::NamedPlanRow& name) const;
  void require_own_partitions(const Point& point) const;
  void make_plans(const Planning& planning);
  void make_plan(const PlanKey& key, std::int64_t evaluations, Planned& planned) const;
  bool is_possible(const Point& point, Role role) const;
  plans::ResolvedPlan made(const Point& point, const planner::NamedPlanRow& name) const;
  plans::ResolvedPlan named_or_read(const Point& point, const plans::PlanContext& context) const;
  plans::ResolvedPlan resolve(const Point& point, Role role) const;
  std::string_view plan_name(const Point& point, Role role) const {
    if (role == Role::kPoint) return value(point, kPlan).text;
    return role == Role::kUncompressed ? "none" : kDdpName;
  }
  std::vector<std::uint32_t> graph_key(const Point& point, Role role) const;
  std::size_t find_graph(const Point& point, Role role);
  Source source(const Point& point, Role role);
  void require_codecs(const Point& point, Role role, const casync::Plan& plan) const;
  double whole_tasks(const Point& point, const casync::Plan& plan) const;
  costs::Cluster base_cluster(const Point& point) const;
  const costs::Cluster& base_cluster_of(const Point& point) const {
    return clusters_.at({point[kProfile], point[kCluster], point[kNodes]});
  }
  costs::LinkCosts link(const Point& point) const;
  costs::Cluster cluster(const Point& point) const;
  std::string describe(const Point& point) const;
  void simulate_one(const Job& job);
  SweepRow row(std::int64_t index) const;

  const SweepSpec& spec_;
  const std::vector<planner::NamedPlanRow> names_;
  const MakePlan make_;
  std::int64_t begin_, end_;
  std::vector<models::Model> models_;     // place_of_model()
  std::vector<costs::Profile> profiles_;  // per value of their axis
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, costs::Cluster>
      clusters_;  // by value of profile, cluster and nodes
  std::map<PlanKey, Planned> planned_;
  std::map<std::tuple<std::uint32_t, std::string, bool>, std::size_t>
      graph_of_plan_;  // by model, the plan's fingerprint, and whether it is folded
  std::map<std::vector<std::uint32_t>, std::size_t> graph_of_point_;
  std::vector<std::unique_ptr<SharedGraph>> graphs_;
  std::vector<Point> machine_points_;               // per machine a point that has it
  std::vector<Source> sources_, baselines_, ddps_;  // per point of the shard
};

Sweep::State::State(const SweepSpec& spec, const Shard& shard, const Planning& planning)
    : spec_(spec),
      names_(planning.names),
      make_(planning.make),
      begin_(shard.begin(spec.points())),
      end_(shard.end(spec.points())) {
  load();
  machine_points_.resize(machines(spec));
  for (std::int64_t index = begin_; index < end_; ++index) {
    const Point at = point(spec, index);
    machine_points_[machine_of(spec, at)] = at;
    const auto key = std::tuple(at[kProfile], at[kCluster], at[kNodes]);
    if (!clusters_.contains(key)) clusters_.emplace(key, base_cluster(at));
  }
  make_plans(planning);
  for (std::int64_t index = begin_; index < end_; ++index) {
    const Point at = point(spec, index);
    sources_.push_back(source(at, Role::kPoint));
    baselines_.push_back(source(at, Role::kUncompressed));
    ddps_.push_back(is_possible(at, Role::kDdp) ? source(at, Role::kDdp) : Source{});
  }
  size.points = end_ - begin_;
  size.planned = static_cast<std::int64_t>(planned_.size());
  size.graphs = static_cast<std::int64_t>(graphs_.size());
  for (const auto& graph : graphs_) {
    size.simulations += static_cast<std::int64_t>(graph->on.size());
    size.tasks += graph->tasks * static_cast<double>(graph->on.size());
  }
}

/// What a file cannot give is wrong at the line that names the file.
void Sweep::State::load() {
  const auto load_axis = [&](Axis axis, auto& into, auto read) {
    for (const AxisValue& value : spec_.values[axis]) {
      try {
        into.push_back(read(spec_.path(value)));
      } catch (const io::InputError& error) {
        spec_.fail(axis, value, error.what());
      }
    }
  };
  load_models();
  load_axis(kProfile, profiles_, costs::read_profile);
}

void Sweep::State::load_models() {
  for (const AxisValue& file : spec_.values[kModel]) {
    for (const AxisValue& time : spec_.values[kComputeTime]) {
      models::Model& model = models_.emplace_back();
      try {
        model = models::read_model(spec_.path(file));
      } catch (const io::InputError& error) {
        spec_.fail(kModel, file, error.what());
      }
      try {
        if (time.number) models::apply({.compute_time = fmt::format("{}s", *time.number)}, model);
      } catch (const io::InputError& error) {
        spec_.fail(kComputeTime, time, error.what());
      }
    }
  }
}

/// The name by which the plan is made; null: it is named or read.
const planner::NamedPlanRow* Sweep::State::planned_name(const Point& point, Role role) const {
  if (role == Role::kUncompressed) return nullptr;
  const std::string_view asked = role == Role::kDdp ? kDdpName : value(point, kPlan).text;
  const auto row = std::ranges::find(names_, asked, &planner::NamedPlanRow::name);
  return row == names_.end() ? nullptr : &*row;
}

/// Baselines do not depend on the algorithm, and some plans not on the machines.
Sweep::State::PlanKey Sweep::State::plan_key(const Point& point,
                                             const planner::NamedPlanRow& name) const {
  PlanKey key{{point[kModel], point[kComputeTime], point[kTopology], point[kNodes]}, name.name};
  if (name.name != kDdpName) key.values.push_back(point[kAlgorithm]);
  const std::size_t axes = name.depends_on_machines ? kAxes : kGraphAxes;
  for (std::size_t axis = kGraphAxes; axis < axes; ++axis) key.values.push_back(point[axis]);
  return key;
}

/// What is made has partitions of its own.
void Sweep::State::require_own_partitions(const Point& point) const {
  if (!value(point, kPartitions).number) return;
  spec_.fail(kPlan, value(point, kPlan),
             "is made with partitions of its own: leave out axis partitions, or give it the value "
             "'plan' alone");
}

/// Makes the plans of all points, several at a time.
void Sweep::State::make_plans(const Planning& planning) {
  for (std::int64_t index = begin_; index < end_; ++index) {
    const Point at = point(spec_, index);
    for (const Role role : {Role::kPoint, Role::kDdp}) {
      if (const planner::NamedPlanRow* name = planned_name(at, role)) {
        if (role == Role::kPoint) require_own_partitions(at);
        planned_.try_emplace(plan_key(at, *name),
                             Planned{.point = at, .plan = {}, .complaint = {}});
      }
    }
  }
  std::vector<std::pair<const PlanKey, Planned>*> queue;
  for (auto& entry : planned_) queue.push_back(&entry);
  std::mutex mutex;
  std::int64_t done = 0;
  run_parallel(queue.size(), planning.jobs, [&](std::size_t i, unsigned) {
    make_plan(queue[i]->first, planning.evaluations, queue[i]->second);
    const std::lock_guard lock(mutex);
    if (planning.progress) planning.progress(++done, static_cast<std::int64_t>(queue.size()));
  });
}

/// Complaints are kept for the first point that needs the plan: for a baseline, that is none.
void Sweep::State::make_plan(const PlanKey& key, std::int64_t evaluations, Planned& planned) const {
  const Point& at = planned.point;
  try {
    // Every core may plan at once.
    const planner::Machines machines{
        .profile = profiles_[at[kProfile]],
        .cluster = cluster(at),
        .network = parse_network(value(at, kNetwork).text),
        .memory_bytes = static_cast<double>(io::available_memory()) /
                        static_cast<double>(io::usable_cores().size())};
    planned.plan = make_(key.name, {.model = model_of(at),
                                    .strategy = value(at, kTopology).text,
                                    .algorithm = value(at, kAlgorithm).text,
                                    .machines = machines,
                                    .limits = {.evaluations = evaluations}});
  } catch (const io::InputError& error) {
    planned.complaint = error.what();
  }
}

/// Whether a baseline exists for the point.
bool Sweep::State::is_possible(const Point& point, Role role) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  return name != nullptr && planned_.at(plan_key(point, *name)).plan.has_value();
}

plans::ResolvedPlan Sweep::State::made(const Point& point,
                                       const planner::NamedPlanRow& name) const {
  const Planned& planned = planned_.at(plan_key(point, name));
  if (planned.plan) return *planned.plan;
  throw io::InputError(!planned.complaint.empty()
                           ? planned.complaint
                           : fmt::format("there is no such plan for topology {}: leave one of the "
                                         "two out",
                                         value(point, kTopology).text));
}

/// The point's plan where it is not made: a file or a name, with the partitions of that axis.
plans::ResolvedPlan Sweep::State::named_or_read(const Point& point,
                                                const plans::PlanContext& context) const {
  // A spec is no command line: it may name files of plans, but no programs of its own.
  const std::string named = plans::trusted_algorithm(spec_.path(value(point, kPlan)), spec_.trust);
  plans::ResolvedPlan resolved = plans::resolve_plan(named, context);
  if (resolved.transfer_order.value_or(TransferOrder::kReady) != TransferOrder::kReady) {
    throw io::InputError("the plan is for transfer_order need, which sweeps do not simulate");
  }
  if (const auto partitions = value(point, kPartitions).number) {
    for (casync::Decision& decision : resolved.plan.decisions) {
      decision.partitions = static_cast<std::int32_t>(*partitions);
    }
  }
  return resolved;
}

plans::ResolvedPlan Sweep::State::resolve(const Point& point, Role role) const {
  const plans::PlanContext context = {
      .model = model_of(point),
      .strategy = value(point, kTopology).text,
      .nodes = static_cast<std::uint32_t>(*value(point, kNodes).number),
      .algorithm = value(point, kAlgorithm).text,
      .trust = spec_.trust};
  plans::ResolvedPlan resolved;
  try {
    if (role == Role::kUncompressed) {
      resolved = plans::resolve_plan("none", context);
    } else if (const planner::NamedPlanRow* name = planned_name(point, role)) {
      resolved = made(point, *name);
    } else {
      resolved = named_or_read(point, context);
    }
  } catch (const io::InputError& error) {
    spec_.fail(kPlan, value(point, kPlan), error.what());
  }
  resolved.plan.gpus_per_node =
      costs::with_nodes(base_cluster_of(point), resolved.plan.nodes).gpus_per_node;
  return resolved;
}

/// A plan that is made for machines must run on these, any other on all of the sweep's.
void Sweep::State::require_codecs(const Point& point, Role role, const casync::Plan& plan) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  const bool on_its_own = name != nullptr && name->depends_on_machines;
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    if (on_its_own && p != point[kProfile]) continue;
    for (const casync::Algorithm& algorithm : plan.algorithms) {
      try {
        profiles_[p].codec(algorithm.name);
      } catch (const io::InputError& error) {
        const AxisValue& asked = value(point, kAlgorithm);
        const AxisValue& culprit = asked.line > 0 ? asked : value(point, kPlan);
        spec_.fail(asked.line > 0 ? kAlgorithm : kPlan, culprit, error.what());
      }
    }
  }
}

/// What does not fit together is wrong at the line of the plan, or, by default, of the topology.
double Sweep::State::whole_tasks(const Point& point, const casync::Plan& plan) const {
  try {
    return casync::whole_tasks(model_of(point), plan);
  } catch (const std::invalid_argument& error) {
    const Axis axis = value(point, kPlan).line > 0 ? kPlan : kTopology;
    spec_.fail(axis, value(point, axis), error.what());
  }
}

/// Points with equal keys have one graph.
std::vector<std::uint32_t> Sweep::State::graph_key(const Point& point, Role role) const {
  const planner::NamedPlanRow* name = planned_name(point, role);
  std::vector<std::uint32_t> key;
  if (name != nullptr) {
    key = plan_key(point, *name).values;
  } else if (role == Role::kUncompressed) {
    key = {point[kModel], point[kComputeTime], point[kTopology], point[kNodes]};
  } else {
    key.assign(point.begin(), point.begin() + kGraphAxes);
  }
  key.push_back(static_cast<std::uint32_t>(role));
  key.push_back(name != nullptr && role == Role::kPoint ? point[kPlan] : 0);
  const costs::Cluster& machines = base_cluster_of(point);
  key.push_back(machines.gpus_per_node);
  key.push_back(alike(machines) ? 1 : 0);
  return key;
}

/// The graph of a point or of a baseline: points whose plans decide the same have one, or two where
/// the nodes of some clusters are alike and those of others are not.
std::size_t Sweep::State::find_graph(const Point& point, Role role) {
  const std::vector<std::uint32_t> key = graph_key(point, role);
  const auto known = graph_of_point_.find(key);
  if (known != graph_of_point_.end()) return known->second;

  const models::Model& model = model_of(point);
  const casync::Plan plan = resolve(point, role).plan;
  require_codecs(point, role, plan);
  const double whole = whole_tasks(point, plan);
  const bool folds = alike(costs::with_nodes(base_cluster_of(point), plan.nodes)) &&
                     casync::foldable(model, plan).kind == casync::Foldability::kExact;
  const double tasks = whole / (folds ? plan.nodes : 1);
  if (tasks > kMaxTasks) {
    spec_.fail(
        kNodes, value(point, kNodes),
        fmt::format("model {} with plan {} makes a graph of about {:.2g} tasks, more than {:g};"
                    " give fewer nodes or partitions",
                    value(point, kModel).text, plan_name(point, role), tasks, kMaxTasks));
  }
  const auto [entry, added] = graph_of_plan_.try_emplace(
      {place_of_model(point), plans::plan_fingerprint(model, plan), folds}, graphs_.size());
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
  if (added) graph.on.push_back(machine);
  return {index, entry->second};
}

costs::Cluster Sweep::State::base_cluster(const Point& point) const {
  const costs::Profile& profile = profiles_[point[kProfile]];
  const auto nodes = static_cast<std::uint32_t>(*value(point, kNodes).number);
  const AxisValue& file = value(point, kCluster);
  if (file.text.empty()) return costs::cluster_from_profile(profile, nodes);
  try {
    return costs::read_cluster(spec_.path(file), profile, nodes);
  } catch (const io::InputError& error) {
    const bool by_default = value(point, kNodes).line == 0;
    spec_.fail(
        kCluster, file,
        std::string(error.what()) +
            (by_default ? fmt::format(" (axis nodes is {} unless the spec gives it)", nodes) : ""));
  }
}

costs::LinkCosts Sweep::State::link(const Point& point) const {
  costs::LinkCosts link = base_cluster_of(point).link;
  if (const auto bandwidth = value(point, kBandwidth).number) {
    link.bandwidth = link.bandwidth_both_ways = *bandwidth;
  }
  link.latency_s = value(point, kLatency).number.value_or(link.latency_s);
  link.overhead_s = value(point, kOverhead).number.value_or(link.overhead_s);
  return link;
}

costs::Cluster Sweep::State::cluster(const Point& point) const {
  costs::Cluster cluster = base_cluster_of(point);
  cluster.link = link(point);
  for (double& speed : cluster.compute_speed) speed *= *value(point, kComputeSpeed).number;
  return cluster;
}

/// "point model=vgg19, nodes=4": the axes that the spec gives.
std::string Sweep::State::describe(const Point& point) const {
  std::string text = "point";
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const AxisValue& at = spec_.values[axis][point[axis]];
    if (at.line > 0) text += fmt::format(" {}={}", axes()[axis].name, at.text);
  }
  return text;
}

void Sweep::State::simulate_one(const Job& job) {
  SharedGraph& shared = *job.graph;
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.graph) {
      shared.plan = resolve(shared.point, shared.role).plan;
      shared.graph = casync::expand(model_of(shared.point), shared.plan, shared.folding);
      shared.whole_tasks = casync::whole_tasks(*shared.graph);
    }
  }
  Point at = shared.point;
  const Point& machine = machine_points_[shared.on[job.index]];
  std::copy(machine.begin() + kGraphAxes, machine.end(), at.begin() + kGraphAxes);
  const TaskCosts costs(profiles_[at[kProfile]], shared.plan.algorithms);
  try {
    const costs::Cluster machines = costs::with_nodes(cluster(at), shared.plan.nodes);
    const Result result = simulate(*shared.graph, costs, machines,
                                   {.network = parse_network(value(at, kNetwork).text)});
    shared.outcomes[job.index] = {result.iteration, result.forward, result.compute};
  } catch (const io::InputError& error) {
    throw io::InputError(spec_.file, 0, describe(at) + ": " + error.what());
  }

  const std::lock_guard lock(shared.mutex);
  if (--shared.left == 0) shared.graph.reset();
}

SweepRow Sweep::State::row(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index - begin_);
  const SharedGraph& graph = *graphs_[sources_[i].graph];
  const Outcome& outcome = graph.outcomes[sources_[i].index];
  const Outcome& baseline = graphs_[baselines_[i].graph]->outcomes[baselines_[i].index];
  SweepRow row;
  row.point = point(spec_, index);
  const costs::LinkCosts links = link(row.point);
  row.bandwidth = links.bandwidth;
  row.latency_s = links.latency_s;
  row.overhead_s = links.overhead_s;
  row.iteration = outcome.iteration;
  row.compute = outcome.compute;
  row.synchronisation = outcome.iteration - outcome.forward;
  row.speedup = speedup(outcome, baseline);
  if (const Source& ddp = ddps_[i]; ddp.graph != kNone) {
    row.speedup_over_ddp = speedup(outcome, graphs_[ddp.graph]->outcomes[ddp.index]);
  }
  row.tasks = graph.whole_tasks;
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
  std::vector<SweepRow> rows;
  for (std::int64_t index = begin_; index < end_; ++index) rows.push_back(row(index));
  return rows;
}

/// A graph is there from the first to the last of its simulations, so of those that run together
/// the first of each graph brings the graph with it.
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
                  io::format_size(memory_bytes, 3), describe(largest->point), largest->tasks,
                  together == 1 ? "" : "fewer `jobs`, "));
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

Sweep::Sweep(const SweepSpec& spec, const Shard& shard, const Planning& planning)
    : state_(std::make_unique<State>(spec, shard, planning)) {}
Sweep::~Sweep() = default;
const SweepSize& Sweep::size() const { return state_->size; }
void Sweep::require_room(unsigned jobs, std::int64_t memory_bytes) const {
  state_->require_room(jobs, memory_bytes);
}
std::vector<SweepRow> Sweep::run(unsigned jobs, const Progress& progress) {
  return state_->run(jobs, progress);
}

std::vector<std::string_view> axes_without_effect(const SweepSpec& spec,
                                                  const std::vector<SweepRow>& rows) {
  std::vector<std::string_view> names;
  std::size_t stride = 1;  // from one value of the axis to the next
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
