#include <algorithm>

#include "casync/partition.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::uint32_t kNext = 1;  // every message of a chain goes to the next node

/// The chunk's N-1 hops along root, root+1, … mod N: every node passes on the bytes that it
/// received, and decodes its copy beside that.
void forward(PartitionTasks& tasks, const UnitWork& work, std::uint32_t nodes) {
  TaskId message = work.ready[work.root];
  if (tasks.compressed()) message = tasks.encode(work.root, Role::kWorker, kNext, message);
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t from = tasks.node(std::int64_t{work.root} + hop - 1);
    const std::uint32_t to = tasks.node(std::int64_t{work.root} + hop);
    message = tasks.deliver(from, to, message);
  }
}

/// The same, but every node decodes what it received and encodes it again for the next.
void recode(PartitionTasks& tasks, const UnitWork& work, std::uint32_t nodes) {
  TaskId values = work.ready[work.root];
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t from = tasks.node(std::int64_t{work.root} + hop - 1);
    const std::uint32_t to = tasks.node(std::int64_t{work.root} + hop);
    TaskId message = values;
    if (tasks.compressed()) {
      message = tasks.encode(from, hop == 1 ? Role::kWorker : Role::kHop, kNext, values);
    }
    values = tasks.deliver(from, to, message);
    if (tasks.compressed()) values = tasks.last_decode();
  }
}

template <void (*kSpread)(PartitionTasks&, const UnitWork&, std::uint32_t)>
void expand(GraphBuilder& builder, const UnitWork& work) {
  if (builder.nodes() == 1) return;
  for (std::int64_t k = 0; k < work.partitions; ++k) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    kSpread(tasks, work, builder.nodes());
  }
}

double tasks_of_chain(double nodes, bool compressed) {
  return nodes > 1 ? 2 * (nodes - 1) + (compressed ? nodes : 0) : 0;
}

double tasks_of_recoding(double nodes, bool compressed) {
  return (compressed ? 4 : 2) * (nodes - 1);
}

// -------------------------------------------------------------------------------- bound's terms

/// A flow shop whose stages are the root's codec, N-1 links and the last node's codec: chunks
/// follow one another through all of them, equal ones but for the last, which may be shorter.
/// Exact where messages neither queue elsewhere nor slow each other down.
double chain(const Slices& slices, const Wire& wire) {
  const double hops = wire.nodes - 1;
  const double hop = wire.hop(slices.first);
  const double encode = slices.first.encode, decode = slices.first.decode;
  const SliceCosts& last = slices.last;
  const double last_hop = wire.hop(last);
  const double latency = hops * wire.latency;
  const auto before = static_cast<double>(slices.count - 1);  // the last chunk
  const double encoded = before * encode + last.encode;
  if (before == 0) return encoded + hops * last_hop + latency + last.decode;
  const double sent = encode + hops * hop + (before - 1) * std::max(encode, hop);
  const double decoded =
      encode + hops * hop + decode + (before - 1) * std::max({encode, hop, decode});
  const double last_sent = std::max(encoded + hops * last_hop, sent + last_hop);
  return std::max(last_sent, decoded) + latency + last.decode;
}

/// The first chunk's way through all nodes, and behind it what the busiest of one node's codec and
/// egress has to do for all others.
double recoded_chain(const Slices& slices, const Wire& wire) {
  const double hops = wire.nodes - 1;
  const SliceCosts& last = slices.last;
  const double last_way = hops * (last.encode + wire.hop(last) + wire.latency + last.decode);
  const auto before = static_cast<double>(slices.count - 1);
  const double codec = wire.nodes > 2 ? slices.first.encode + slices.first.decode
                                      : std::max(slices.first.encode, slices.first.decode);
  return last_way + before * std::max(codec, wire.hop(slices.first));
}

}  // namespace

const Topology kChain = {
    .name = "chain",
    .help = "broadcast: chunks travel from node to node, encoded once, decoded beside that",
    .expand = expand<forward>,
    .tasks_per_partition = tasks_of_chain,
    .operation = Operation::kBroadcast,
    .spread = chain,
};

const Topology kChainP2p = {
    .name = "chain_p2p",
    .help = "broadcast: the same, but every node decodes and encodes anew; for comparison",
    .expand = expand<recode>,
    .tasks_per_partition = tasks_of_recoding,
    .operation = Operation::kBroadcast,
    .recodes = true,
    .spread = recoded_chain,
};

}  // namespace hipress::casync
