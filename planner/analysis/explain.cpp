#include "planner/analysis/explain.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "casync/layout.hpp"
#include "planner/analysis/swaps.hpp"
#include "planner/search/search.hpp"
#include "sim/critical_path.hpp"

namespace hipress::planner {
namespace {

using casync::Kind;
using casync::Picoseconds;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

struct WorkTimes {
  double bytes_s = 0, latency_s = 0, codec_s = 0, local_s = 0;

  Limiter most() const {
    const std::pair<double, Limiter> all[] = {{bytes_s, Limiter::kBandwidth},
                                              {latency_s, Limiter::kLatency},
                                              {codec_s, Limiter::kCodec},
                                              {local_s, Limiter::kLocal}};
    const auto& [seconds, limiter] =
        *std::ranges::max_element(all, {}, &std::pair<double, Limiter>::first);
    return seconds > 0 ? limiter : Limiter::kNothing;
  }
};

/// Times of one unit (a gradient or bulk group) in the timeline.
struct UnitUse {
  Picoseconds ready{}, done{}, on_path{};
  WorkTimes work, path;    ///< mean work of a node, and the part of it on the critical path
  std::uint32_t hops = 0;  ///< largest number of messages in sequence
};

/// Simulated iteration of a plan, broken down by unit.
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

  /// The kind of work that takes most of the unit's time on the critical path; less of it would
  /// shorten the iteration. For units that are not on the path, the kind with the most work.
  Limiter limiter(std::uint32_t unit) const {
    const UnitUse of = use(unit);
    if (of.on_path.count() > 0) return of.path.most();
    WorkTimes work = of.work;
    work.latency_s += of.hops * cluster_.link.latency_s;
    return work.most();
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

  static bool is_message(const Task& task) {
    return task.kind == Kind::kSend || task.kind == Kind::kAllReduce || casync::is_of_group(task);
  }

  void add_work(TaskId id, UnitUse& use) {
    const Task& task = graph_[id];
    const double nodes = graph_.representatives();
    if (is_message(task)) {
      use.work.bytes_s +=
          static_cast<double>(casync::bytes_sent(graph_, task)) / cluster_.link.bandwidth / nodes;
      use.work.latency_s += cluster_.link.overhead_s / nodes;
    } else if (casync::is_local(task)) {
      use.work.local_s += length_s(id) / nodes;
    } else if (!casync::is_instant(task) && task.kind != Kind::kRecv) {
      use.work.codec_s += length_s(id) / nodes;
    }
  }

  /// Raises use.hops to the number of messages in sequence up to this task. Task ids are a
  /// topological order, so predecessors are counted first.
  void count_hops(TaskId id, UnitUse& use) {
    const Task& task = graph_[id];
    if (is_message(task)) ++hops_[id];
    use.hops = std::max(use.hops, hops_[id]);
    for (const TaskId next : casync::successors(graph_, id)) {
      if (graph_.unit_of(graph_[next]) == graph_.unit_of(task))
        hops_[next] = std::max(hops_[next], hops_[id]);
    }
  }

  void add_path() {
    Picoseconds reached{};
    for (const TaskId id : sim::critical_path(graph_, result_.timeline)) {
      const Picoseconds start = std::max(reached, result_.timeline.start[id]);
      const Picoseconds end = std::max(start, result_.timeline.end[id]);
      if (!casync::is_computation(graph_[id])) {
        UnitUse& use = units_[graph_.unit_of(graph_[id])];
        use.on_path += end - reached;
        add_stretch(graph_[id], casync::to_seconds(start - reached),
                    casync::to_seconds(end - start), use.path);
      }
      reached = end;
    }
  }

  /// Adds a task's part of the critical path, and the time on the wire before it.
  void add_stretch(const Task& task, double wire_s, double length_s, WorkTimes& path) const {
    path.latency_s += wire_s;
    if (task.kind == Kind::kRecv) {
      path.latency_s += length_s;
    } else if (is_message(task)) {
      const double overhead_s = std::min(length_s, cluster_.link.overhead_s);
      path.latency_s += overhead_s;
      path.bytes_s += length_s - overhead_s;
    } else if (casync::is_local(task)) {
      path.local_s += length_s;
    } else {
      path.codec_s += length_s;
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
  // Gradients of a layer have no ready times of their own: all become ready with the layer.
  const Picoseconds own = dissection.use(g).ready;
  row.ready_s = casync::to_seconds(own.count() > 0 ? own : use.ready);
  row.done_s = std::max(row.ready_s, casync::to_seconds(use.done));
  row.on_path_s = casync::to_seconds(use.on_path);
  row.place = use.on_path.count() > 0                ? Place::kCritical
              : use.done <= dissection.compute_end() ? Place::kHidden
                                                     : Place::kOffPath;
  row.limiter = dissection.limiter(unit);
  return row;
}

/// Adds the runners-up if the plan's schedule decides several gradients together. Simulates each.
void add_runner_ups_of_parts(const Problem& problem, const TimedPlan& plan,
                             Explanation& explanation) {
  const SearchRow& search = search_for(problem.schedule, {});
  const std::vector<std::uint32_t> part_of = plan.plan.schedule.timetable(problem.model).part_of;
  struct RunnerUp {
    std::optional<std::string> option;
    double time_s = std::numeric_limits<double>::infinity();
  };
  std::map<std::uint32_t, RunnerUp> of_part;
  for (GradientRow& row : explanation.rows) {
    const std::uint32_t g = row.gradient;
    row.option = describe_option(problem.model, plan.plan, g);
    const auto [place, is_new] = of_part.try_emplace(part_of[g]);
    RunnerUp& best = place->second;
    if (is_new) {
      for (const casync::Plan& other : search.others(problem, plan.plan, g)) {
        std::string option = describe_option(problem.model, other, g);
        if (option == row.option) continue;
        const double time_s =
            simulated_iteration_s(problem.model, other, *problem.machines, plan.transfer_order);
        if (time_s < best.time_s) best = {std::move(option), time_s};
      }
    }
    if (!best.option) continue;
    row.runner_up = best.option;
    row.runner_up_cost_s = best.time_s - plan.iteration_s;
  }
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
      return "bandwidth";
    case Limiter::kLatency:
      return "latency";
    case Limiter::kCodec:
      return "codecs";
    case Limiter::kLocal:
      return "the GPUs' links";
    case Limiter::kNothing:
      break;
  }
  return "nothing";
}

std::string GradientRow::why() const {
  std::string text = to_string(place);
  if (limiter == Limiter::kNothing) {
    text += ", nothing to do";
  } else {
    text += place == Place::kCritical ? ", bound by " : ", mostly ";
    text += to_string(limiter);
  }
  return text + (group.empty() ? "" : ", in " + group);
}

Explanation explain(const Problem& problem, const TimedPlan& plan) {
  AffordableScenario how = required_scenario(problem, plan, "explain");
  how.scenario.iterations = 1;
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
  if (kind_of(plan.plan.schedule) == JobKind::kAveraging) {
    add_runner_ups(problem, plan, explanation);
  } else {
    add_runner_ups_of_parts(problem, plan, explanation);
  }
  explanation.classes = summarise(problem.model, explanation.rows);
  return explanation;
}

}  // namespace hipress::planner
