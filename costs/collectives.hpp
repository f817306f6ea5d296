#pragma once

#include <cstdint>
#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// What a collective of a library is taken for where it was not measured.
struct CollectiveRow {
  const char* name;     ///< "all-reduce"
  const char* formula;  ///< of ideal_s, for readers
  double (*ideal_s)(double nodes, std::int64_t bytes, const LinkCosts& link);
  GatherCosts Profile::*measured;
};
/// Rings of N−1 steps of o + S/(N·B) + L each, an all-reduce of twice as many; the last one in N−1
/// messages one after the other: (N−1)·o + (N−1)/N·S/B + L.
extern const CollectiveRow kAllReduce, kAllGather, kReduceScatter, kAllToAll;

/// Seconds that a library's collective takes, by a profile's measurements of it. `bytes` is the
/// size of all shards together, which each node holds before or after the collective.
///
/// For other links and numbers of nodes N, the ideal time there is multiplied by the *efficiency*:
/// the measured time divided by the ideal time, both on the profile's own link. Between measured
/// numbers of nodes the efficiency is interpolated linearly in N; beyond them it is held. A profile
/// without measurements has the ideal times.
class CollectiveCosts {
 public:
  CollectiveCosts(const Profile& profile, const CollectiveRow& row)
      : row_(row), link_(profile.link), measured_(profile.*row.measured) {}

  bool is_measured() const { return !measured_.empty(); }

  /// Seconds on `nodes` nodes; for a measured number of nodes on the profile's own link what was
  /// measured.
  double seconds(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;

  /// What a reader must know of costs for so many nodes ("not measured: …"); empty if they were
  /// measured.
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  double ratio(int nodes, std::int64_t bytes) const;

  const CollectiveRow& row_;
  LinkCosts link_;
  GatherCosts measured_;
};

class AllReduceCosts : public CollectiveCosts {
 public:
  explicit AllReduceCosts(const Profile& profile) : CollectiveCosts(profile, kAllReduce) {}
};

/// Of the collectives of sharded training. A gather or a reduction that was not measured takes half
/// of what an all-reduce does.
class ShardCosts {
 public:
  explicit ShardCosts(const Profile& profile);
  double gather_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;
  double reduce_scatter_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;
  double all_to_all_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;
  /// As CollectiveCosts, of gathers and reductions.
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  AllReduceCosts all_reduce_;
  CollectiveCosts gather_, reduce_scatter_, all_to_all_;
};

}  // namespace hipress::costs
