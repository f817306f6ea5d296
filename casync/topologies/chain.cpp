#include <algorithm>

#include "casync/partition.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::uint32_t kNext = 1;  // every message of a chain goes to the next node

/// Sends the chunk along root, root+1, … mod N, in N-1 hops. Every node forwards the received
/// bytes, and decodes its copy meanwhile.
void forward(PartitionTasks& tasks, const UnitWork& work, std::uint32_t nodes) {
  TaskId message = work.ready[work.root];
  if (tasks.compressed()) message = tasks.encode(work.root, Role::kWorker, kNext, message);
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t from = tasks.node(std::int64_t{work.root} + hop - 1);
    const std::uint32_t to = tasks.node(std::int64_t{work.root} + hop);
    message = tasks.deliver(from, to, message);
  }
}

void expand(GraphBuilder& builder, const UnitWork& work) {
  if (builder.nodes() == 1) return;
  for (std::int64_t k = 0; k < work.partitions; ++k) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    forward(tasks, work, builder.nodes());
  }
}

double tasks_of_chain(double nodes, bool compressed) {
  return nodes > 1 ? 2 * (nodes - 1) + (compressed ? nodes : 0) : 0;
}

// -------------------------------------------------------------------------------- bound's terms

/// Time of a flow shop whose stages are the root's codec, N-1 links and the last node's codec.
/// Chunks pass through all stages one after the other. All have one length, except the last, which
/// may be shorter. The time is exact if messages neither queue elsewhere nor slow each other down.
double chain(const Slices& slices, const Wire& wire) {
  const double hops = wire.nodes - 1;
  const double hop = wire.hop(slices.first);
  const double encode = slices.first.encode, decode = slices.first.decode;
  const SliceCosts& last = slices.last;
  const double last_hop = wire.hop(last);
  const double latency = hops * wire.latency;
  const auto before = static_cast<double>(slices.count - 1);  // number of chunks before the last
  const double encoded = before * encode + last.encode;
  if (before == 0) return encoded + hops * last_hop + latency + last.decode;
  const double sent = encode + hops * hop + (before - 1) * std::max(encode, hop);
  const double decoded =
      encode + hops * hop + decode + (before - 1) * std::max({encode, hop, decode});
  const double last_sent = std::max(encoded + hops * last_hop, sent + last_hop);
  return std::max(last_sent, decoded) + latency + last.decode;
}

}  // namespace

const Topology kChain = {
    .name = "chain",
    .help = "broadcast: chunks travel from node to node, encoded once, and are decoded meanwhile",
    .expand = expand,
    .tasks_per_partition = tasks_of_chain,
    .operation = Operation::kBroadcast,
    .spread = chain,
};

}  // namespace hipress::casync
