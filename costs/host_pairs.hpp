#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace hipress::costs {

/// Hash index of links by the two hosts at their ends.
class HostPairs {
 public:
  /// `links` are Cluster::slow_links. If several join the same hosts, the first counts.
  template <class Links>
  explicit HostPairs(const Links& links) {
    std::uint32_t place = 0;
    for (const auto& link : links) place_of_.try_emplace(ends(link.a, link.b), place++);
  }

  /// Index of the link between two hosts, in either direction; nullopt: only the hosts' own links.
  std::optional<std::uint32_t> find(std::uint32_t from, std::uint32_t to) const {
    const auto found = place_of_.find(ends(from, to));
    return found == place_of_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static std::uint64_t ends(std::uint32_t a, std::uint32_t b) {
    return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  }

  std::unordered_map<std::uint64_t, std::uint32_t> place_of_;
};

}  // namespace hipress::costs
