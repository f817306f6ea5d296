#pragma once

#include "casync/topology.hpp"

/// The rows of topologies(). Each is defined in a file of its topology.
namespace hipress::casync {

extern const Topology kPs;
extern const Topology kRing;
extern const Topology kAllReduce;
extern const Topology kAllGather;
extern const Topology kChain;
extern const Topology kBinomial;
extern const Topology kScatterAllGather;
extern const Topology kRingReduceScatter;
extern const Topology kRingGather;
extern const Topology kDirectReduceScatter;
extern const Topology kDirectGather;
extern const Topology kTwoLevelReduceScatter;

/// Mean load per node of the tasks that tasks_of_messages() counts, for ps and ring.
inline Loads mean_loads_of_messages(const Slices& slices, const Wire& wire) {
  const double others = (wire.nodes - 1) / wire.nodes;
  Loads loads;
  loads.port.average = 2 * others * slices.total.port;
  loads.codec.average = slices.total.encode + slices.total.decode + others * slices.total.add;
  return loads;
}

/// Number of tasks per partition of ps and ring: 2(N-1) Sends, 2(N-1) Recvs and N-1 additions.
/// Compressed partitions also have N Encodes and N Decodes.
inline double tasks_of_messages(double nodes, bool compressed) {
  return 5 * (nodes - 1) + (compressed ? 2 * nodes : 0);
}

/// Number of tasks per partition of a reduce-scatter or an all-gather: half of a mean's.
inline double tasks_of_half(double nodes, bool compressed) {
  return tasks_of_messages(nodes, compressed) / 2;
}

}  // namespace hipress::casync
