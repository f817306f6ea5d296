#include "costs/slow_links.hpp"

#include <algorithm>

namespace hipress::costs {
namespace {

/// One number of two hosts, the lower of which comes first.
std::uint64_t ends(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

}  // namespace

SlowLinks::SlowLinks(const Cluster& cluster) : cluster_(cluster) {
  for (std::uint32_t place = 0; place < cluster.slow_links.size(); ++place) {
    const SlowLink& link = cluster.slow_links[place];
    place_of_.try_emplace(ends(link.a, link.b), place);
  }
}

std::optional<std::uint32_t> SlowLinks::between(std::uint32_t from, std::uint32_t to) const {
  if (place_of_.empty()) return std::nullopt;
  const auto [a, b] = std::minmax(cluster_.host[from], cluster_.host[to]);
  const auto found = place_of_.find(ends(a, b));
  return found == place_of_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hipress::costs
