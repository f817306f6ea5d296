#include <algorithm>
#include <tuple>

#include "casync/rewrites.hpp"

namespace hipress::casync {
namespace {

/// A task with its phase.
struct Placed {
  std::uint32_t representative;
  std::uint32_t place;  ///< index of its unit in Layout::order
  std::uint32_t depth;
  bool transfers;  ///< a transfer, in the phase after the codec tasks of its depth
  TaskId id;

  auto phase() const { return std::tie(representative, place, depth, transfers); }
  auto key() const { return std::tie(representative, place, depth, transfers, id); }
};

std::vector<Placed> placed_tasks(const GraphBuilder& builder, const Layout& layout, TaskId first) {
  std::vector<std::uint32_t> place(layout.units.size());
  for (std::uint32_t i = 0; i < layout.order.size(); ++i) place[layout.order[i]] = i;
  const auto owner = [&](TaskId id) { return layout.owner(builder.task(id).gradient); };
  std::vector<std::uint32_t> depth(builder.size() - first, 1);
  // Edges into a task come before edges into later tasks, so the depths of predecessors are final.
  for (const auto& [before, after] : builder.edges()) {
    if (before < first || is_computation(builder.task(before))) continue;
    if (owner(before) != owner(after)) continue;
    depth[after - first] = std::max(depth[after - first], depth[before - first] + 1);
  }
  std::vector<Placed> tasks;
  for (TaskId id = first; id < builder.size(); ++id) {
    const Task& task = builder.task(id);
    if (is_computation(task)) continue;
    const bool transfers =
        task.kind == Kind::kSend || task.kind == Kind::kAllReduce || is_local(task);
    tasks.push_back(
        {builder.representative(task.node), place[owner(id)], depth[id - first], transfers, id});
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const Placed& a, const Placed& b) { return a.key() < b.key(); });
  return tasks;
}

}  // namespace

void remove_pipelining(GraphBuilder& builder, const Layout& layout, TaskId first) {
  const std::vector<Placed> tasks = placed_tasks(builder, layout, first);
  auto previous = tasks.end();  // beginning of the previous phase
  TaskId gate = 0;              // the Join after the phases before `previous`
  for (auto begin = tasks.begin(); begin != tasks.end();) {
    const auto end = std::find_if(
        begin, tasks.end(), [&](const Placed& task) { return task.phase() != begin->phase(); });
    const bool first_of_node =
        previous == tasks.end() || previous->representative != begin->representative;
    if (!first_of_node) {
      const bool has_gate =
          previous != tasks.begin() && (previous - 1)->representative == previous->representative;
      const TaskId join = builder.add({.gradient = builder.task(previous->id).gradient,
                                       .node = previous->representative,
                                       .kind = Kind::kJoin});
      if (has_gate) builder.edge(gate, join);
      for (auto task = previous; task != begin; ++task) builder.edge(task->id, join);
      for (auto task = begin; task != end; ++task) {
        // A Recv marks an arrival, which phases of its receiver do not delay.
        if (builder.task(task->id).kind != Kind::kRecv) builder.edge(join, task->id);
      }
      gate = join;
    }
    previous = begin;
    begin = end;
  }
}

}  // namespace hipress::casync
