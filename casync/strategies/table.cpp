#include <array>

#include "casync/strategies/rows.hpp"

namespace hipress::casync {

std::span<const Strategy* const> own_strategies() {
  static const std::array rows = {&kPs,
                                  &kRing,
                                  &kAllReduce,
                                  &kAllGather,
                                  &kChain,
                                  &kBinomial,
                                  &kScatterAllGather,
                                  &kChainP2p,
                                  &kRingReduceScatter,
                                  &kDirectReduceScatter,
                                  &kTwoLevelReduceScatter,
                                  &kRingGather,
                                  &kDirectGather};
  return rows;
}

}  // namespace hipress::casync
