#include "sim/message_sizes.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace hipress::sim {

bool predict_sizes(const costs::Profile& profile, std::vector<casync::Algorithm>& algorithms) {
  bool changes = false;
  for (casync::Algorithm& algorithm : algorithms) {
    const std::string row = profile.row_of(algorithm.name);
    const double share = row.empty() ? 1 : profile.codecs.at(row).message_share;
    if (share == 1) continue;
    changes = true;
    algorithm.encoded_bytes = [bound = std::move(algorithm.encoded_bytes),
                               share](std::int64_t elements) {
      const double bytes = share * static_cast<double>(bound(elements));
      return (static_cast<std::int64_t>(std::ceil(bytes)) + 3) / 4 * 4;
    };
  }
  return changes;
}

}  // namespace hipress::sim
