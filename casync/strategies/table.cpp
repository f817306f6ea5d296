#include <array>

#include "casync/strategies/rows.hpp"

namespace hipress::casync {

std::span<const Strategy* const> own_strategies() {
  static const std::array rows = {&kPs,    &kRing,     &kAllReduce,        &kAllGather,
                                  &kChain, &kBinomial, &kScatterAllGather, &kChainP2p};
  return rows;
}

}  // namespace hipress::casync
