#include <algorithm>
#include <cmath>
#include <map>

#include "casync/halves.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Sums slices on the owner: its own, then those of nodes owner-1, owner-2, … mod N. They should
/// arrive in this order, since node i sends to owners i+1, i+2, … The chain of tasks fixes the
/// order of the floating-point sum.
TaskId reduce(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides) {
  const std::uint32_t server = tasks.node(owner);
  TaskId sum = work.ready[server];
  for (std::int64_t distance = 1; distance < tasks.nodes(); ++distance) {
    const std::uint32_t worker = tasks.node(owner - distance);
    const bool is_mean = divides && distance + 1 == tasks.nodes();
    sum = tasks.contribute({.from = worker,
                            .to = server,
                            .ready = work.ready[worker],
                            .other = sum,
                            .added = is_mean ? kDivideSum : kNoFlags});
  }
  return sum;
}

/// Sends the owner's slice in N-1 messages, one to each other node.
void gather(PartitionTasks& tasks, std::int64_t owner, TaskId ready, TaskFlags flags) {
  const std::uint32_t server = tasks.node(owner);
  TaskId message = ready;
  if (tasks.compressed()) {
    const std::uint32_t only = tasks.offset(server, tasks.node(owner + 1));
    message = tasks.encode(server, Role::kServer, tasks.nodes() == 2 ? only : 0, ready, flags);
  }
  for (std::int64_t distance = 1; distance < tasks.nodes(); ++distance) {
    const std::uint32_t worker = tasks.node(owner + distance);
    const TaskId arrival = tasks.transfer(server, worker, message, PartitionTasks::Lands::kInSlice);
    if (tasks.compressed()) tasks.decode(worker, arrival, tasks.offset(server, worker));
  }
  if (tasks.compressed()) tasks.decode(server, message, 0);
}

constexpr Halves kHalves = {.reduce = reduce, .gather = gather};

// ------------------------------------------------------------------------------- coarse pattern

/// Maximum number of chunks into which the coarse pattern divides the N-1 messages of a phase,
/// which it then pipelines.
constexpr std::uint32_t kChunks = 4;

/// Adds the coarse pattern. With K < N, only K nodes are servers, so the busiest node's work is
/// more than the mean.
StepIds add_coarse(CoarsePattern& pattern, const CoarseCosts& costs, const StepIds& start) {
  const auto [nodes, share, message, encode, add, decode, latency] = costs;
  const double waves =
      std::max(1.0, static_cast<double>(static_cast<std::int64_t>(share + 0.999999)));
  const double stretch = waves / share;
  const bool one_by_one = stretch > 1;
  const std::uint32_t chunks = std::min(kChunks, nodes - 1);
  const double times = share * (nodes - 1) / chunks;  // operations of a node per chunk
  const auto behind = [](StepIds ids, const StepIds& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  };
  StepIds sent, added;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    StepIds ready = start;
    if (encode > 0) ready = {pattern.add(Resource::kCodec, times * encode, 1, 0, start)};
    if (one_by_one) ready = behind(ready, sent);
    sent = {pattern.add(Resource::kPorts, times * message, stretch, latency, ready)};
    added = {pattern.add(Resource::kCodec, times * add, stretch, 0, behind(sent, added))};
  }
  StepIds mean = added;
  if (encode > 0) mean = {pattern.add(Resource::kCodec, share * encode, stretch, 0, mean)};
  StepIds ends;
  sent = {};
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    sent = {pattern.add(Resource::kPorts, times * message, stretch, latency,
                        one_by_one ? behind(mean, sent) : mean)};
    const StepIds end =
        decode > 0 ? StepIds{pattern.add(Resource::kCodec, times * decode, 1, 0, sent)} : sent;
    ends = behind(ends, end);
  }
  if (decode > 0) ends.push_back(pattern.add(Resource::kCodec, share * decode, 1, 0, mean));
  return ends;
}

// -------------------------------------------------------------------------------- bound's terms

double gathered(const SliceCosts& slice, const Wire& wire) {
  return slice.encode + wire.latency +
         std::max(wire.hop(slice) + (wire.nodes - 1) * slice.add, wire.fan(slice) + slice.add);
}

double spread_encoded(const SliceCosts& slice, const Wire& wire) {
  return slice.encode + wire.fan(slice) + wire.latency + slice.decode;
}

double chain(const Slices& slices, const Wire& wire) {
  return gathered(slices.first, wire) + spread_encoded(slices.first, wire);
}

/// The larger of two bounds. A node sends its last slice only after it has encoded all slices that
/// it does not own. It decodes all slices that it does not own only after the first has arrived.
double piped(const Slices& slices, const Wire& wire) {
  const double others = std::floor(static_cast<double>(slices.count) / wire.nodes);
  const double encodes = std::max(0.0, slices.total.encode - others * slices.first.encode);
  const double decodes = std::max(0.0, slices.total.decode - others * slices.first.decode);
  const SliceCosts& least = slices.last;
  const double encoded =
      encodes + wire.hop(least) + wire.latency + least.add + spread_encoded(least, wire);
  const double spread =
      gathered(least, wire) + least.encode + wire.hop(least) + wire.latency + decodes;
  return std::max(encoded, spread);
}

double chain_of_last(const SliceCosts& slice, const Wire& wire) {
  const double as_worker = slice.encode + wire.hop(slice) + wire.latency + slice.add;
  const double as_server = (wire.nodes - 1) * slice.add;
  return std::min(as_worker, as_server) + spread_encoded(slice, wire);
}

double spread(const SliceCosts& slice, const Wire& wire) { return wire.fan(slice) + wire.latency; }

Loads loads(const Slices& slices, const Wire& wire) {
  Loads loads = mean_loads_of_messages(slices, wire);
  loads.servers = static_cast<std::uint32_t>(slices.count);
  if (wire.nodes > 1) {
    loads.port.all = slices.total.port;
    loads.port.served = (wire.nodes - 2) * slices.first_load.port;
    loads.port.served_last = (wire.nodes - 2) * slices.last_load.port;
  }
  loads.codec.all = slices.total.encode + slices.total.decode;
  loads.codec.served = (wire.nodes - 1) * slices.first_load.add;
  loads.codec.served_last = (wire.nodes - 1) * slices.last_load.add;
  return loads;
}

/// Mean over hosts of one partition's messages between hosts: one to and one from each node that is
/// not on the server's host. They are fewest if the server is on the host with most nodes.
double crossings(std::span<const std::uint32_t> host) {
  std::map<std::uint32_t, double> nodes_on;
  double most = 0;
  for (const std::uint32_t of_node : host) most = std::max(most, ++nodes_on[of_node]);
  return 2 * (static_cast<double>(host.size()) - most) / static_cast<double>(nodes_on.size());
}

constexpr BoundTerms kBound = {chain, piped, chain_of_last, spread, loads, crossings, gathered};

}  // namespace

const Topology kPs = {
    .name = "ps",
    .help = "parameter servers co-located with the workers, one per partition",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_mean(builder, work, kHalves, work.unit); },
    .tasks_per_partition = tasks_of_messages,
    .encodings = [](std::uint32_t nodes) { return nodes == 1 ? 1 : 2; },  // worker and server
    .rotates = true,
    .coarse = add_coarse,
    .bound = &kBound,
};

const Topology kDirectReduceScatter = {
    .name = "direct_reduce_scatter",
    .help = "every node sends every other node its part of that node's shard",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_reduce_scatter(builder, work, kHalves); },
    .tasks_per_partition = tasks_of_half,
    .operation = Operation::kReduceScatter,
};

const Topology kDirectGather = {
    .name = "direct_gather",
    .help = "every node sends every other its shard",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_gather(builder, work, kHalves); },
    .tasks_per_partition = tasks_of_half,
    .operation = Operation::kGather,
};

}  // namespace hipress::casync
