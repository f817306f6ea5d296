#pragma once

#include "casync/strategy.hpp"

/// The rows of strategies(), a file each.
namespace hipress::casync {

extern const Strategy kPs;
extern const Strategy kRing;
extern const Strategy kAllReduce;
extern const Strategy kAllGather;
extern const Strategy kChain;
extern const Strategy kBinomial;
extern const Strategy kScatterAllGather;
extern const Strategy kChainP2p;
extern const Strategy kRingReduceScatter;
extern const Strategy kRingGather;
extern const Strategy kDirectReduceScatter;
extern const Strategy kDirectGather;
extern const Strategy kTwoLevelReduceScatter;

/// Of ps and ring: the mean over nodes of what tasks_of_messages() load them with.
inline Loads mean_loads_of_messages(const Slices& slices, const Wire& wire) {
  const double others = (wire.nodes - 1) / wire.nodes;
  Loads loads;
  loads.port.average = 2 * others * slices.total.port;
  loads.codec.average = slices.total.encode + slices.total.decode + others * slices.total.add;
  return loads;
}

/// Of ps and ring: 2(N-1) messages are sent and received and N-1 slices added; compressed, N slices
/// are encoded and the mean is decoded on N nodes.
inline double tasks_of_messages(double nodes, bool compressed) {
  return 5 * (nodes - 1) + (compressed ? 2 * nodes : 0);
}

/// Of half a mean, which ends where the other begins.
inline double tasks_of_half(double nodes, bool compressed) {
  return tasks_of_messages(nodes, compressed) / 2;
}

}  // namespace hipress::casync
