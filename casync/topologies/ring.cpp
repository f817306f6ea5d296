#include <algorithm>
#include <cmath>
#include <set>

#include "casync/halves.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Sends the partial sum in N-1 hops that end at the owner. Each node adds its own slice to the
/// received sum and passes it on.
TaskId reduce(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides) {
  const TaskFlags own = tasks.divide_first() ? kDivideOwn : kNoFlags;
  TaskId sum = work.ready[tasks.node(owner + 1)];
  for (std::int64_t hop = 1; hop < tasks.nodes(); ++hop) {
    const std::uint32_t to = tasks.node(owner + hop + 1);
    const bool first = hop == 1;
    const bool is_mean = divides && hop + 1 == tasks.nodes() && !tasks.divide_first();
    sum = tasks.contribute({.from = tasks.node(owner + hop),
                            .to = to,
                            .ready = sum,
                            .other = work.ready[to],
                            .role = first ? Role::kWorker : Role::kHop,
                            .encoded = first ? own : kNoFlags,
                            .added = is_mean ? kDivideSum : own});
  }
  return sum;
}

/// Passes the owner's message on from node to node unchanged, in N-1 hops.
void gather(PartitionTasks& tasks, std::int64_t owner, TaskId ready, TaskFlags flags) {
  TaskId message = ready;
  if (tasks.compressed()) {
    const std::uint32_t node = tasks.node(owner);
    const std::uint32_t offset = tasks.offset(node, tasks.node(owner + 1));
    message = tasks.encode(node, Role::kServer, offset, ready, flags);
    tasks.decode(node, message, 0);
  }
  for (std::int64_t hop = 1; hop < tasks.nodes(); ++hop) {
    const std::uint32_t from = tasks.node(owner + hop - 1);
    const std::uint32_t to = tasks.node(owner + hop);
    message = tasks.transfer(from, to, message, PartitionTasks::Lands::kInSlice);
    if (tasks.compressed()) tasks.decode(to, message, tasks.offset(from, to));
  }
}

constexpr Halves kHalves = {
    .reduce = reduce, .gather = gather, .partial_sums = true, .rings = true};

// ------------------------------------------------------------------------------- coarse pattern

/// Maximum number of chunks into which the coarse pattern divides the N-1 hops of a phase.
constexpr std::uint32_t kChunks = 6;

void add_lane(CoarsePattern& pattern, const CoarseCosts& costs, double share, const StepIds& start,
              StepIds& ends) {
  const double stretch = 1 / share;
  const std::uint32_t chunks = std::min(kChunks, costs.nodes - 1);
  const double hops = static_cast<double>(costs.nodes - 1) / chunks;
  const double latency = hops * costs.latency;
  const auto codec = [&](double work, double busiest, const StepIds& after) {
    return pattern.add(Resource::kCodec, work, busiest, 0, after);
  };
  StepIds message = start;
  if (costs.encode > 0) message = {codec(share * costs.encode, stretch, start)};
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    message = {
        pattern.add(Resource::kPorts, hops * share * costs.message, stretch, latency, message)};
    message = {codec(hops * share * (costs.add + costs.encode), stretch, message)};
  }
  if (costs.decode > 0) ends.push_back(codec(share * costs.decode, stretch, message));
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    message = {
        pattern.add(Resource::kPorts, hops * share * costs.message, stretch, latency, message)};
    if (costs.decode > 0) {
      ends.push_back(codec(hops * share * costs.decode, 1, message));
    } else if (chunk + 1 == chunks) {
      ends.push_back(message.front());
    }
  }
}

StepIds add_coarse(CoarsePattern& pattern, const CoarseCosts& costs, const StepIds& start) {
  const auto lanes = std::max<std::int64_t>(1, static_cast<std::int64_t>(costs.share + 0.999999));
  StepIds ends;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    add_lane(pattern, costs, costs.share / static_cast<double>(lanes), start, ends);
  }
  return ends;
}

// -------------------------------------------------------------------------------- bound's terms

double reduced(const SliceCosts& slice, const Wire& wire) {
  return slice.encode +
         (wire.nodes - 1) * (wire.hop(slice) + wire.latency + slice.add + slice.encode);
}

double spread(const SliceCosts& slice, const Wire& wire) {
  return (wire.nodes - 1) * (wire.hop(slice) + wire.latency) + slice.decode;
}

double chain(const Slices& slices, const Wire& wire) {
  return reduced(slices.first, wire) + spread(slices.first, wire);
}

double piped(const Slices& slices, const Wire& wire) {
  const double encoded = slices.total.encode + spread(slices.last, wire);
  const double decoded = reduced(slices.last, wire) + slices.total.decode;
  return std::max(encoded, decoded);
}

double chain_of_last(const SliceCosts& slice, const Wire& wire) {
  return slice.add + slice.encode + spread(slice, wire);
}

/// Per partition, a port carries two messages, except on two nodes, where it carries one. Every
/// node adds once, except the one that begins the sum. `fewer` is the largest number of partitions
/// in which a node can be the same exception.
Loads loads(const Slices& slices, const Wire& wire) {
  const double fewer = std::ceil(static_cast<double>(slices.count) / wire.nodes);
  Loads loads = mean_loads_of_messages(slices, wire);
  if (wire.nodes > 1) {
    loads.port.all = std::max(0.0, 2 * slices.total.port - 2 * fewer * slices.first_load.port);
  }
  loads.codec.all = slices.total.encode + slices.total.decode +
                    std::max(0.0, slices.total.add - fewer * slices.first_load.add);
  return loads;
}

/// Mean over hosts of one partition's messages between hosts. The sum and the mean each pass all
/// steps of the ring but one, which may be between hosts.
double crossings(std::span<const std::uint32_t> host) {
  double steps = 0;
  for (std::size_t node = 0; node < host.size(); ++node) {
    steps += host[node] != host[(node + 1) % host.size()];
  }
  const std::set<std::uint32_t> hosts(host.begin(), host.end());
  return 2 * std::max(0.0, steps - 1) / static_cast<double>(hosts.size());
}

constexpr BoundTerms kBound = {chain, piped, chain_of_last, spread, loads, crossings, reduced};

}  // namespace

const Topology kRing = {
    .name = "ring",
    .help = "ring all-reduce: partial sums travel N-1 hops, then the mean does",
    .expand =
        [](GraphBuilder& builder, const UnitWork& work) {
          expand_mean(builder, work, kHalves, std::int64_t{work.unit} - 1);
        },
    .tasks_per_partition = tasks_of_messages,
    .rotates = true,
    .coarse = add_coarse,
    .bound = &kBound,
};

const Topology kRingReduceScatter = {
    .name = "ring_reduce_scatter",
    .help = "partial sums of shards travel N-1 hops, which end where the shard belongs",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_reduce_scatter(builder, work, kHalves); },
    .tasks_per_partition = tasks_of_half,
    .operation = Operation::kReduceScatter,
};

const Topology kRingGather = {
    .name = "ring_gather",
    .help = "shards travel N-1 hops",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_gather(builder, work, kHalves); },
    .tasks_per_partition = tasks_of_half,
    .operation = Operation::kGather,
};

}  // namespace hipress::casync
