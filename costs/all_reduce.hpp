#pragma once

#include <cstdint>
#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// What a library's all-reduce takes, from a profile's measurements of it.
///
/// A measurement is carried over to other links and numbers of nodes N by its *efficiency*: the
/// time by which an ideal ring on the profile's own link, 2(N-1)·(o + S/(N·B) + L), is slower or
/// faster. Between measured numbers of nodes the efficiency is interpolated linearly in N, beyond
/// them held. A profile without measurements counts as one of the ideal ring.
class AllReduceCosts {
 public:
  explicit AllReduceCosts(const Profile& profile)
      : link_(profile.link), measured_(profile.all_reduce) {}

  /// Seconds for `bytes` on each of `nodes` nodes; for a measured number of nodes on the profile's
  /// own link what was measured.
  double seconds(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;

  /// What a reader must know of costs for so many nodes ("not measured: …"); empty if they were
  /// measured.
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  double ratio(int nodes, std::int64_t bytes) const;

  LinkCosts link_;
  GatherCosts measured_;
};

}  // namespace hipress::costs
