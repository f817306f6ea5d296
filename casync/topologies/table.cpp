#include <array>

#include "casync/topologies/rows.hpp"

namespace hipress::casync {

std::span<const Topology* const> own_topologies() {
  static const std::array rows = {&kPs,
                                  &kRing,
                                  &kAllReduce,
                                  &kAllGather,
                                  &kChain,
                                  &kBinomial,
                                  &kScatterAllGather,
                                  &kRingReduceScatter,
                                  &kDirectReduceScatter,
                                  &kTwoLevelReduceScatter,
                                  &kRingGather,
                                  &kDirectGather};
  return rows;
}

}  // namespace hipress::casync
