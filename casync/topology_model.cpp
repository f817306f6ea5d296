#include "casync/topology_model.hpp"

#include <algorithm>

namespace hipress::casync {

double Wire::hop(const SliceCosts& slice) const { return std::max(0.0, slice.message - burst); }

double Wire::fan(const SliceCosts& slice) const {
  return std::max(0.0, (nodes - 1) * slice.message - burst);
}

}  // namespace hipress::casync
