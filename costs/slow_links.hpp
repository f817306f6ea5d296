#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "costs/cluster.hpp"

namespace hipress::costs {

/// Finds the slow link between two nodes in a time that does not grow with the number of links.
class SlowLinks {
 public:
  /// The cluster must outlive it, and keep its slow links.
  explicit SlowLinks(const Cluster& cluster);

  /// The place in Cluster::slow_links of what joins these nodes' hosts; none: their own links
  /// alone.
  std::optional<std::uint32_t> between(std::uint32_t from, std::uint32_t to) const;

 private:
  const Cluster& cluster_;
  std::unordered_map<std::uint64_t, std::uint32_t> place_of_;  ///< by the hosts at both ends
};

}  // namespace hipress::costs
