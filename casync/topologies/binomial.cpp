#include <bit>
#include <vector>

#include "casync/partition.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Nodes are counted from the root. In round d = 1, 2, 4 …, each node i < d has the chunk and sends
/// it to node i + d. After ceil(log2 N) rounds all nodes have it. Only the root encodes.
void expand(GraphBuilder& builder, const UnitWork& work) {
  const std::uint32_t nodes = builder.nodes();
  if (nodes == 1) return;
  for (std::int64_t k = 0; k < work.partitions; ++k) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    const auto node = [&](std::uint32_t place) {
      return tasks.node(std::int64_t{work.root} + place);
    };
    std::vector<TaskId> message(nodes);  // by place
    message[0] = work.ready[work.root];
    if (tasks.compressed()) message[0] = tasks.encode(work.root, Role::kWorker, 0, message[0]);
    for (std::uint32_t d = 1; d < nodes; d *= 2) {
      for (std::uint32_t i = 0; i < d && i + d < nodes; ++i) {
        message[i + d] = tasks.deliver(node(i), node(i + d), message[i]);
      }
    }
  }
}

double tasks_of_tree(double nodes, bool compressed) {
  return nodes > 1 ? 2 * (nodes - 1) + (compressed ? nodes : 0) : 0;
}

/// Lower bound: the larger of two terms. First, the root sends each chunk ceil(log2 N) times, and
/// the last to arrive is decoded. Second, the root encodes all chunks, and the last one takes
/// ceil(log2 N) rounds, since a round at most doubles the number of nodes that have it.
double tree(const Slices& slices, const Wire& wire) {
  const auto rounds =
      static_cast<double>(std::bit_width(static_cast<std::uint32_t>(wire.nodes) - 1));
  const SliceCosts& last = slices.last;
  const double sent = slices.last.encode + rounds * slices.total.port - wire.burst + wire.latency;
  const double encoded = slices.total.encode + rounds * wire.hop(last) + wire.latency;
  return std::max(sent, encoded) + last.decode;
}

}  // namespace

const Topology kBinomial = {
    .name = "binomial",
    .help = "broadcast: a binomial tree; the nodes that have a chunk double in each round",
    .expand = expand,
    .tasks_per_partition = tasks_of_tree,
    .operation = Operation::kBroadcast,
    .spread = tree,
};

}  // namespace hipress::casync
