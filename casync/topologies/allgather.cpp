#include <algorithm>
#include <map>
#include <vector>

#include "casync/partition.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Every node divides its slice by N, encodes it once, and sends the message to all others. Once a
/// node has the messages of all nodes, it decodes their sum, which includes its own message. All
/// nodes add in the order of ranks, so all end with the same bits.
void expand(GraphBuilder& builder, const UnitWork& work) {
  const std::uint32_t nodes = builder.nodes();
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    tasks.gather_messages();
    std::vector<std::vector<TaskId>> messages(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      messages[node] = {tasks.encode(node, Role::kWorker, 0, work.ready[node], kDivideOwn)};
    }
    for (std::uint32_t distance = 1; distance < nodes; ++distance) {
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const std::uint32_t to = tasks.node(std::int64_t{node} + distance);
        messages[to].push_back(
            tasks.transfer(node, to, messages[node].front(), PartitionTasks::Lands::kInMessage));
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) tasks.decode_gathered(node, messages[node]);
  }
}

/// An Encode and a Decode on every node, a Send and a Recv for every ordered pair of nodes.
double tasks(double nodes, bool) { return 2 * nodes * nodes; }

/// A Decode of N messages: the first overwrites, the others are added.
double decode_all(const SliceCosts& slice, double nodes) {
  return slice.decode + (nodes - 1) * slice.add;
}

// ------------------------------------------------------------------------------- coarse pattern

/// Maximum number of chunks into which a node's work (encode, send, decode) is pipelined.
constexpr std::int64_t kChunks = 4;

StepIds add_coarse(CoarsePattern& pattern, const CoarseCosts& costs, const StepIds& start) {
  const double slices = costs.share * costs.nodes;
  const std::int64_t chunks =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(slices + 0.5), 1, kChunks);
  const double of_chunk = slices / static_cast<double>(chunks);
  const double others = costs.nodes - 1;
  StepIds encoded = start, sent, ends;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    encoded = {pattern.add(Resource::kCodec, of_chunk * costs.encode, 1, 0, encoded)};
    StepIds ready = encoded;
    ready.insert(ready.end(), sent.begin(), sent.end());
    sent = {
        pattern.add(Resource::kPorts, of_chunk * others * costs.message, 1, costs.latency, ready)};
    const double decode = of_chunk * (costs.decode + others * costs.add);
    ends.push_back(pattern.add(Resource::kCodec, decode, 1, 0, sent));
  }
  return ends;
}

// -------------------------------------------------------------------------------- bound's terms

/// Time until all other nodes' messages are through a node's port: it cannot decode earlier.
double all_come(const SliceCosts& slice, const Wire& wire) {
  return slice.encode + wire.fan(slice) + wire.latency;
}

double chain(const Slices& slices, const Wire& wire) {
  return all_come(slices.first, wire) + decode_all(slices.first, wire.nodes);
}

/// The larger of two bounds. A node sends its last slice only after it has encoded all. It decodes
/// all slices only after the first messages of all other nodes have arrived.
double piped(const Slices& slices, const Wire& wire) {
  const SliceCosts& least = slices.last;
  const double encoded =
      slices.total.encode + wire.fan(least) + wire.latency + decode_all(least, wire.nodes);
  const double decoded = all_come(least, wire) + decode_all(slices.total, wire.nodes);
  return std::max(encoded, decoded);
}

double chain_of_last(const SliceCosts& slice, const Wire& wire) {
  return all_come(slice, wire) + decode_all(slice, wire.nodes);
}

/// Not used: raw slices do not travel this way.
double spread(const SliceCosts&, const Wire&) { return 0; }

Loads loads(const Slices& slices, const Wire& wire) {
  Loads loads;
  loads.port.all = loads.port.average = (wire.nodes - 1) * slices.total.port;
  loads.codec.all = loads.codec.average =
      slices.total.encode + decode_all(slices.total, wire.nodes);
  return loads;
}

/// Mean over hosts of one partition's messages that leave the host: one from each of its nodes to
/// each node of other hosts.
double crossings(std::span<const std::uint32_t> host) {
  std::map<std::uint32_t, double> nodes_on;
  for (const std::uint32_t of_node : host) ++nodes_on[of_node];
  double messages = 0;
  for (const auto& [_, nodes] : nodes_on) {
    messages += nodes * (static_cast<double>(host.size()) - nodes);
  }
  return messages / static_cast<double>(nodes_on.size());
}

constexpr BoundTerms kBound = {chain, piped, chain_of_last, spread, loads, crossings};

}  // namespace

const Topology kAllGather = {
    .name = "allgather",
    .help =
        "every node's message goes to all others, who decode the sum of all; for sparse "
        "messages",
    .expand = expand,
    .tasks_per_partition = tasks,
    .form = Topology::Form::kEncoded,
    .encodings = [](std::uint32_t) { return 1; },
    .rotates = true,
    .coarse = add_coarse,
    .bound = &kBound,
    .dense = "ring",
};

}  // namespace hipress::casync
