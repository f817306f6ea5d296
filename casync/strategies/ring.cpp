#include <algorithm>
#include <cmath>
#include <set>

#include "casync/partition.hpp"
#include "casync/strategies/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::uint32_t kNext = 1;  // every message of a ring goes to the next node

/// The partial sum's N-1 hops: each node adds its own slice to what arrives and passes the sum on;
/// the last one holds the mean. Returns that node's message of the mean (raw: the task after which
/// its slice holds it).
TaskId reduce(PartitionTasks& tasks, const UnitWork& work, std::uint32_t nodes,
              std::int64_t start) {
  const std::uint32_t origin = tasks.node(start);
  const TaskFlags own = tasks.divide_first() ? kDivideOwn : kNoFlags;
  TaskId message = work.ready[origin];
  if (tasks.compressed()) {
    message = tasks.encode(origin, nodes == 1 ? Role::kServer : Role::kWorker,
                           nodes == 1 ? 0 : kNext, message, own);
  }
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t node = tasks.node(start + hop);
    const bool last = hop == nodes - 1;
    const TaskId arrival = tasks.transfer(tasks.node(start + hop - 1), node, message,
                                          PartitionTasks::Lands::kInMessage);
    const bool sum_is_whole = last && !tasks.divide_first();
    if (!tasks.compressed()) {
      message =
          tasks.add(node, arrival, work.ready[node], kNext, sum_is_whole ? kDivideSum : kNoFlags);
      continue;
    }
    message = tasks.add(node, arrival, work.ready[node], kNext, own);
    message = tasks.encode(node, last ? Role::kServer : Role::kHop, kNext, message,
                           sum_is_whole ? kDivideOwn : kNoFlags);
  }
  return message;
}

/// The mean's N-1 hops: its bytes travel unchanged, and every node, the one that encoded it
/// included, decodes them.
void forward(PartitionTasks& tasks, std::uint32_t nodes, std::int64_t start, TaskId message) {
  if (tasks.compressed()) tasks.decode(tasks.node(start), message, 0);
  for (std::uint32_t hop = 1; hop < nodes; ++hop) {
    const std::uint32_t node = tasks.node(start + hop);
    message =
        tasks.transfer(tasks.node(start + hop - 1), node, message, PartitionTasks::Lands::kInSlice);
    if (tasks.compressed()) tasks.decode(node, message, kNext);
  }
}

void expand(GraphBuilder& builder, const UnitWork& work) {
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    const std::int64_t start = work.unit + k;
    const TaskId mean = reduce(tasks, work, builder.nodes(), start);
    forward(tasks, builder.nodes(), start + builder.nodes() - 1, mean);
  }
}

// ------------------------------------------------------------------------------- coarse pattern

/// The chunks that a phase of N-1 hops is cut into.
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

/// Where a partition starts, and where it is summed up, is one message less; where it starts, one
/// sum less.
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

/// Messages between neighbours on different hosts: each of the ring's links but one carries two.
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

const Strategy kRing = {
    .name = "ring",
    .help = "ring all-reduce: partial sums travel N-1 hops, then the mean does",
    .expand = expand,
    .tasks_per_partition = tasks_of_messages,
    .rotates = true,
    .coarse = add_coarse,
    .bound = &kBound,
};

}  // namespace hipress::casync
