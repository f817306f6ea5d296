#include "casync/partition.hpp"

namespace hipress::casync {
namespace {

constexpr std::uint32_t kNext = 1;  // every message of a ring goes to the next node

/// The partial sum's N-1 hops: each node adds its own slice to what arrives and passes the sum on;
/// the last one holds the mean. Returns that node's message of the mean (raw: the task after which
/// its slice holds it).
TaskId reduce(PartitionTasks& tasks, const GradientWork& work, std::uint32_t nodes,
              std::int64_t start) {
  const std::uint32_t origin = tasks.node(start);
  const std::uint8_t own = tasks.divide_first() ? kDivideOwn : 0;
  TaskId message = work.ready[origin];
  if (tasks.compressed()) {
    message = tasks.encode(origin, nodes == 1 ? Role::kServer : Role::kWorker,
                           nodes == 1 ? 0 : kNext, message, own);
  }
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t node = tasks.node(start + hop);
    const bool last = hop == nodes - 1;
    const TaskId arrival = tasks.transfer(tasks.node(start + hop - 1), node, message);
    const bool sum_is_whole = last && !tasks.divide_first();
    if (!tasks.compressed()) {
      message = tasks.add(node, arrival, work.ready[node], kNext, sum_is_whole ? kDivideSum : 0);
      continue;
    }
    message = tasks.add(node, arrival, work.ready[node], kNext, own);
    message = tasks.encode(node, last ? Role::kServer : Role::kHop, kNext, message,
                           sum_is_whole ? kDivideOwn : 0);
  }
  return message;
}

/// The mean's N-1 hops: its bytes travel unchanged, and every node, the one that coded it included,
/// decodes them.
void forward(PartitionTasks& tasks, std::uint32_t nodes, std::int64_t start, TaskId message) {
  if (tasks.compressed()) tasks.decode(tasks.node(start), message, 0);
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t node = tasks.node(start + hop);
    message = tasks.transfer(tasks.node(start + hop - 1), node, message);
    if (tasks.compressed()) tasks.decode(node, message, kNext);
  }
}

}  // namespace

void expand_ring(GraphBuilder& builder, const GradientWork& work) {
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    const std::int64_t start = work.gradient + k;
    const TaskId mean = reduce(tasks, work, builder.nodes(), start);
    forward(tasks, builder.nodes(), start + builder.nodes() - 1, mean);
  }
}

}  // namespace hipress::casync
