#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace hipress::costs {

/// Finds a link by the two hosts at its ends, in a time that does not grow with the number of
/// links.
class HostPairs {
 public:
  /// `links` are Cluster::slow_links: of those between the same hosts the first is found.
  template <class Links>
  explicit HostPairs(const Links& links) {
    std::uint32_t place = 0;
    for (const auto& link : links) place_of_.try_emplace(ends(link.a, link.b), place++);
  }

  /// The place of what joins the two, in either direction; none: their own links alone.
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
