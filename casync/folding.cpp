#include "casync/folding.hpp"

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"

namespace hipress::casync {
namespace {

/// Length of a unit's shortest slice, which is the last one, or of its longest, the first one.
std::int64_t slice_length(const Unit& unit, SliceLength length) {
  const std::int64_t k = length == SliceLength::kLongest ? 0 : unit.slices() - 1;
  return slice(unit.elements, unit.slices(), k).elements;
}

/// Units that are sent: gradients and groups, or their factors.
std::vector<std::uint32_t> transferred(const Layout& layout) {
  std::vector<std::uint32_t> units;
  for (const std::uint32_t index : layout.order) {
    for (const std::uint32_t unit : layout.carried(index)) units.push_back(unit);
  }
  return units;
}

std::string describe(const Layout& layout, std::uint32_t unit) {
  if (layout.is_factor(unit)) return "factor " + io::quote(layout.units[unit].name);
  return layout.is_group(unit) ? "bulk group " + layout.units[unit].name
                               : "gradient " + io::quote(layout.units[unit].name);
}

/// Number of tasks of a micro-step whose shards travel in messages. On every node, a layer has two
/// passes, and each of its gathers and its reduction has two Joins and the topology's tasks.
double tasks_in_messages(const Layout& layout, double nodes) {
  double tasks = nodes * 2 * static_cast<double>(layout.order.size());
  for (const Unit& unit : layout.units) {
    if (unit.members.empty()) continue;
    tasks += 2 * nodes + nodes * unit.topology->tasks_per_partition(nodes, unit.algorithm != kRaw);
  }
  return tasks;
}

}  // namespace

Foldability foldable(const models::Model& model, const Plan& plan) {
  const Layout layout = make_layout(model, plan);
  Foldability verdict;
  if (layout.timetable.sharding && plan.shards_in_messages()) {
    return {Foldability::kImpossible,
            "shards travel by " + plan.shards_by + ", each from the node that has it"};
  }
  // In a sharded schedule, all groups run the same collectives, and all other tasks are local to a
  // node.
  if (layout.timetable.sharding) return verdict;
  for (const std::uint32_t index : transferred(layout)) {
    const Unit& unit = layout.units[index];
    if (!unit.topology->rotates) {
      return {Foldability::kImpossible, describe(layout, index) + " goes by " +
                                            std::string(unit.topology->name) +
                                            ", which does not look the same from every node"};
    }
    if (unit.topology->form == Topology::Form::kWhole) continue;
    if (plan.rails > 1) {
      return {Foldability::kImpossible,
              "partitions go around " + std::to_string(plan.rails) + " rings"};
    }
    if (unit.partitions % static_cast<std::int64_t>(plan.nodes) != 0) {
      return {Foldability::kImpossible,
              describe(layout, index) + " has " + std::to_string(unit.partitions) +
                  " partitions, not a multiple of " + std::to_string(plan.nodes)};
    }
    if (verdict.kind == Foldability::kExact &&
        slice_length(unit, SliceLength::kShortest) != slice_length(unit, SliceLength::kLongest)) {
      const std::string why = "the " + std::to_string(unit.partitions) + " slices of " +
                              describe(layout, index) + " are not equal";
      const bool batched = plan.batch.threshold_bytes > 0;
      if (batched) return {Foldability::kImpossible, why + ", and launches are batched"};
      verdict = {Foldability::kBounded, why};
    }
  }
  return verdict;
}

std::int64_t whole_tasks(const TaskGraph& graph) {
  std::int64_t tasks = graph.tasks();
  if (!graph.folded) return tasks;
  std::int64_t all_reduces = 0, joins = 0;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kAllReduce) ++all_reduces;
    if (is_of_group(graph[id]))
      joins += graph.nodes + graph.nodes / graph.groups[graph[id].group].nodes;
  }
  return graph.nodes * tasks - (graph.nodes - 1) * all_reduces + joins;
}

double whole_tasks(const models::Model& model, const Plan& plan) {
  const Layout layout = make_layout(model, plan);
  const double nodes = plan.nodes;
  if (layout.timetable.sharding) {
    if (plan.shards_in_messages()) return tasks_in_messages(layout, nodes) * model.micro_steps;
    // Upper bound: a layer has two passes and up to five collectives, each with Joins and codecs.
    constexpr double kMost = 2 + 5 * (3 + 2);
    return nodes * kMost * static_cast<double>(layout.order.size()) * model.micro_steps;
  }
  double tasks = nodes * (1 + static_cast<double>(model.gradients.size()));  // computation
  for (const std::uint32_t index : transferred(layout)) {
    const Unit& unit = layout.units[index];
    const std::int64_t longest = slice_length(unit, SliceLength::kLongest);
    const auto partitions = static_cast<double>((unit.elements + longest - 1) / longest);
    tasks += partitions * unit.topology->tasks_per_partition(nodes, unit.algorithm != kRaw);
  }
  for (const std::uint32_t owner : layout.owners()) {
    tasks += nodes * (layout.units[owner].factors + 1);  // Encodes and a Decode
  }
  for (const std::uint32_t index : layout.order) {
    const Unit& unit = layout.units[index];
    if (layout.is_group(index)) tasks += nodes;  // Joins
    if (plan.gpus_per_node == 1) continue;
    if (!layout.timetable.is_uniform()) {
      tasks += nodes;                               // LocalBroadcast; besides, in every step:
      tasks += 3 * nodes * layout.timetable.steps;  // Join, LocalReduce and LocalBroadcast
      continue;
    }
    const bool mean = unit.topology->operation == Operation::kMean;
    tasks += (mean ? nodes : 1) + nodes;  // LocalReduce and LocalBroadcast
  }
  if (plan.gpus_per_node > 1 && !layout.timetable.is_uniform()) {  // Forwards, Backwards per step
    tasks += 2 * nodes * static_cast<double>(model.gradients.size()) * layout.timetable.steps;
  }
  return tasks;
}

PlannedModel with_even_slices(const models::Model& model, const Plan& plan, SliceLength length) {
  const Layout layout = make_layout(model, plan);
  PlannedModel even{model, plan};
  even.plan.bulk = {};  // changed sizes must not change the groups
  even.plan.bulk_groups.clear();
  for (const std::uint32_t index : layout.order) {
    const Unit& unit = layout.units[index];
    if (layout.is_group(index)) {
      even.plan.bulk_groups.push_back(unit.members);
    } else {
      even.model.gradients[index].elements = unit.slices() * slice_length(unit, length);
    }
  }
  return even;
}

}  // namespace hipress::casync
