#include "planner/analysis/explain.hpp"

#include <algorithm>
#include <map>

#include "casync/layout.hpp"
#include "planner/analysis/swaps.hpp"
#include "sim/critical_path.hpp"

namespace hipress::planner {
namespace {

using casync::Kind;
using casync::Picoseconds;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// What the timeline says of one unit (a gradient or bulk group).
struct UnitUse {
  Picoseconds ready{}, done{}, on_path{};
  // One node's mean work in seconds, by what it is.
  double codec_s = 0, bytes_s = 0, overhead_s = 0, local_s = 0;
  std::uint32_t hops = 0;  ///< messages one after the other
};

/// A plan's simulated iteration, taken apart by unit.
class Dissection {
 public:
  Dissection(const sim::Scenario& scenario, const TaskGraph& graph)
      : cluster_(scenario.cluster),
        graph_(graph),
        result_(sim::simulate(scenario, graph, sim::Timelines::kRecorded)),
        hops_(graph.tasks(), 0) {
    for (TaskId id = 0; id < graph.tasks(); ++id) add(id);
    add_path();
  }

  Picoseconds compute_end() const { return result_.compute; }

  UnitUse use(std::uint32_t unit) const {
    const auto found = units_.find(unit);
    return found == units_.end() ? UnitUse{} : found->second;
  }

  Limiter limiter(std::uint32_t unit) const {
    const UnitUse of = use(unit);
    const std::pair<double, Limiter> work[] = {
        {of.bytes_s, Limiter::kBandwidth},
        {of.overhead_s + of.hops * cluster_.link.latency_s, Limiter::kLatency},
        {of.codec_s, Limiter::kCodec},
        {of.local_s, Limiter::kLocal}};
    const auto* most =
        std::max_element(std::begin(work), std::end(work),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    return most->first > 0 ? most->second : Limiter::kNothing;
  }

 private:
  double length_s(TaskId id) const {
    return casync::to_seconds(result_.timeline.end[id] - result_.timeline.start[id]);
  }

  void add(TaskId id) {
    const Task& task = graph_[id];
    if (task.kind == Kind::kForward) return;
    UnitUse& use = units_[graph_.unit_of(task)];
    if (task.kind == Kind::kBackward) {
      use.ready = std::max(use.ready, result_.timeline.end[id]);
      return;
    }
    use.done = std::max(use.done, result_.timeline.end[id]);
    add_work(id, use);
    count_hops(id, use);
  }

  void add_work(TaskId id, UnitUse& use) {
    const Task& task = graph_[id];
    const double nodes = graph_.representatives();
    if (task.kind == Kind::kSend || task.kind == Kind::kAllReduce) {
      use.bytes_s +=
          static_cast<double>(casync::bytes_sent(graph_, task)) / cluster_.link.bandwidth / nodes;
      use.overhead_s += cluster_.link.overhead_s / nodes;
    } else if (casync::is_local(task)) {
      use.local_s += length_s(id) / nodes;
    } else if (!casync::is_instant(task) && task.kind != Kind::kRecv) {
      use.codec_s += length_s(id) / nodes;
    }
  }

  /// Task ids are a topological order, so what comes before a task is counted before it.
  void count_hops(TaskId id, UnitUse& use) {
    const Task& task = graph_[id];
    if (task.kind == Kind::kSend || task.kind == Kind::kAllReduce) ++hops_[id];
    use.hops = std::max(use.hops, hops_[id]);
    for (const TaskId next : casync::successors(graph_, id)) {
      if (graph_.unit_of(graph_[next]) == graph_.unit_of(task))
        hops_[next] = std::max(hops_[next], hops_[id]);
    }
  }

  void add_path() {
    Picoseconds reached{};
    for (const TaskId id : sim::critical_path(graph_, result_.timeline)) {
      const Picoseconds end = result_.timeline.end[id];
      if (!casync::is_computation(graph_[id]))
        units_[graph_.unit_of(graph_[id])].on_path += end - reached;
      reached = end;
    }
  }

  const costs::Cluster& cluster_;
  const TaskGraph& graph_;
  const sim::Result result_;
  std::vector<std::uint32_t> hops_;
  std::map<std::uint32_t, UnitUse> units_;
};

GradientRow make_row(const Dissection& dissection, const casync::Layout& layout, std::uint32_t g) {
  const std::uint32_t unit = layout.unit_of[g];
  const UnitUse use = dissection.use(unit);
  GradientRow row;
  row.gradient = g;
  row.group = layout.is_group(unit) ? layout.units[unit].name : "";
  row.ready_s = casync::to_seconds(dissection.use(g).ready);
  row.done_s = std::max(row.ready_s, casync::to_seconds(use.done));
  row.on_path_s = casync::to_seconds(use.on_path);
  row.place = use.on_path.count() > 0                ? Place::kCritical
              : use.done <= dissection.compute_end() ? Place::kHidden
                                                     : Place::kOffPath;
  row.limiter = dissection.limiter(unit);
  return row;
}

void add_runner_ups(const Problem& problem, const TimedPlan& plan, Explanation& explanation) {
  Workbench bench(problem, plan);
  Swaps swaps(bench, problem, plan, explanation.rows.size());
  explanation.estimated = swaps.estimated();
  for (GradientRow& row : explanation.rows) {
    const std::uint32_t g = row.gradient;
    row.option = bench.describe(g, bench.plan().options[g]);
    const auto other = swaps.runner_up(
        g, row.group.empty() ? Swaps::Membership::kAlone : Swaps::Membership::kInGroup);
    if (!other) continue;
    row.runner_up = bench.describe(g, *other);
    row.runner_up_cost_s = swaps.cost_s(g, *other);
  }
}

std::vector<SizeClass> summarise(const models::Model& model, const std::vector<GradientRow>& rows) {
  std::map<std::int64_t, SizeClass, std::greater<>> classes;
  for (const GradientRow& row : rows) {
    const std::int64_t elements = model.gradients[row.gradient].elements;
    SizeClass& size = classes[elements];
    size.elements = elements;
    ++size.count;
    size.hidden += row.place == Place::kHidden ? 1 : 0;
    size.critical += row.place == Place::kCritical ? 1 : 0;
    const auto known = std::find_if(size.options.begin(), size.options.end(),
                                    [&](const auto& option) { return option.first == row.option; });
    if (known == size.options.end()) {
      size.options.emplace_back(row.option, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<SizeClass> list;
  for (auto& [elements, size] : classes) {
    std::stable_sort(size.options.begin(), size.options.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    list.push_back(std::move(size));
  }
  return list;
}

}  // namespace

const char* to_string(Place place) {
  switch (place) {
    case Place::kHidden:
      return "hidden behind backward";
    case Place::kCritical:
      return "on the critical path";
    case Place::kOffPath:
      break;
  }
  return "after backward, off the critical path";
}

const char* to_string(Limiter limiter) {
  switch (limiter) {
    case Limiter::kBandwidth:
      return "bandwidth-bound";
    case Limiter::kLatency:
      return "latency-bound";
    case Limiter::kCodec:
      return "codec-bound";
    case Limiter::kLocal:
      return "bound by the GPUs' links";
    case Limiter::kNothing:
      break;
  }
  return "nothing to do";
}

std::string GradientRow::why() const {
  return std::string(to_string(place)) + ", " + to_string(limiter) +
         (group.empty() ? "" : ", in " + group);
}

Explanation explain(const Problem& problem, const TimedPlan& plan) {
  const AffordableScenario how = required_scenario(problem, plan, "explain");
  const sim::ExpandedGraph expanded = sim::expand(how.scenario, how.fold);
  const casync::Layout layout = casync::make_layout(problem.model, how.scenario.plan);
  Explanation explanation;
  {
    const Dissection dissection(how.scenario, expanded.graph);
    for (const std::uint32_t g : casync::backward_order(problem.model)) {
      explanation.rows.push_back(make_row(dissection, layout, g));
    }
  }
  explanation.memory =
      plan_memory(how.scenario.model, how.scenario.plan,
                  expanded.graph.folded ? casync::Folding::kFolded : casync::Folding::kNone);
  add_runner_ups(problem, plan, explanation);
  explanation.classes = summarise(problem.model, explanation.rows);
  return explanation;
}

}  // namespace hipress::planner
