#include "sim/message_sizes.hpp"

#include <cmath>
#include <utility>

namespace hipress::sim {

MessageBytes predicted_bytes(const costs::Profile& profile, const std::string& algorithm,
                             MessageBytes bound) {
  const std::string row = profile.row_of(algorithm);
  if (row.empty()) return bound;
  const double share = profile.codecs.at(row).message_share;
  if (share == 1) return bound;
  return [bound = std::move(bound), share](std::int64_t elements) {
    const double bytes = share * static_cast<double>(bound(elements));
    return (static_cast<std::int64_t>(std::ceil(bytes)) + 3) / 4 * 4;
  };
}

}  // namespace hipress::sim
