#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Adds one AllReduce per node. All start together, after a Join on node 0 that waits until the
/// last node's gradient is complete. In half precision the task also casts, unless the gradient is
/// stored in that type.
void expand(GraphBuilder& builder, const UnitWork& work) {
  if (builder.nodes() == 1) return;
  const std::uint32_t nodes = builder.folded() ? 1 : builder.nodes();
  const bool halves = work.algorithm != nullptr, casts = halves && !work.as_stored;
  const std::int64_t bytes = halves ? work.algorithm->message_bytes(work.elements)
                                    : work.elements * static_cast<std::int64_t>(sizeof(float));
  const TaskId start = builder.add({.gradient = work.unit, .kind = Kind::kJoin});
  for (std::uint32_t node = 0; node < nodes; ++node) builder.edge(work.ready[node], start);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Task task = {.amount = bytes,
                       .gradient = work.unit,
                       .node = node,
                       .peer_offset = 1,
                       .kind = Kind::kAllReduce,
                       .algorithm = casts ? work.algorithm_index : kRaw,
                       .flags = casts ? kDivideOwn : kNoFlags};
    const std::uint32_t slice =
        builder.slice_of(task, work.elements * static_cast<std::int64_t>(sizeof(float)));
    const std::uint32_t sum = casts ? builder.message(node, work.algorithm_index, bytes) : slice;
    const TaskId reduce = builder.add(task, {slice, sum});
    builder.edge(start, reduce);
    builder.edge(work.ready[node], reduce);
  }
}

/// Number of tasks: one AllReduce per node, and the Join.
double tasks(double nodes, bool) { return nodes > 1 ? nodes + 1 : 0; }

}  // namespace

const Topology kAllReduce = {
    .name = "allreduce",
    .help = "a library's own all-reduce, as measured: raw, or in half precision",
    .expand = expand,
    .tasks_per_partition = tasks,
    .form = Topology::Form::kWhole,
    .rotates = true,
};

}  // namespace hipress::casync
