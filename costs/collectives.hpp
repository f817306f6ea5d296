#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/collective_model.hpp"
#include "costs/profile.hpp"

namespace hipress::costs {

/// What a collective of a library is taken for where it was not measured.
struct CollectiveRow {
  const char* name;     ///< "all-reduce"
  const char* formula;  ///< of ideal_s, for readers
  double (*ideal_s)(double nodes, std::int64_t bytes, const LinkCosts& link);
  GatherCosts Profile::*measured;
  Operation operation;  ///< of the model of hosts of GPUs
};
/// Rings of N−1 steps of o + S/(N·B) + L each, an all-reduce of twice as many; the last one in N−1
/// messages one after the other: (N−1)·o + (N−1)/N·S/B + L.
extern const CollectiveRow kAllReduce, kAllGather, kReduceScatter, kAllToAll;

/// The least seconds that one takes on any machines: its bytes over that link.
double wire_s(const CollectiveRow& row, std::uint32_t nodes, std::int64_t bytes,
              const LinkCosts& link);

/// Seconds that a library's collective takes, by a profile's measurements of it. `bytes` is the
/// size of all shards together, which each node holds before or after the collective.
///
/// On the profile's own link a measured number of nodes takes what was measured. Elsewhere the time
/// has two parts:
///  - the *wire time*: the ideal time there. No collective takes less.
///  - the *core time*: what was measured beside the ideal time on the profile's own link. It does
///    not depend on the link, and is added. Where cores limit the profile's link, as they do on a
///    loopback, all of the measured time is core time. It passes while the wire is busy, so the
///    longer of the two counts, and ranks that share a host's cores take it in turn.
/// The core time is a multiple of the ideal time on the profile's link, which is interpolated
/// linearly between measured numbers of nodes and held beyond them. A profile without measurements
/// has the ideal times.
///
/// On hosts of a machine (Profile::machine, LinkCosts::span) what was not measured takes what the
/// model of collectives says (collective_model.hpp), times what the nearest measured number of
/// nodes took beside the model.
class CollectiveCosts {
 public:
  CollectiveCosts(const Profile& profile, const CollectiveRow& row);

  /// There are costs other than those of an ideal ring.
  bool is_known() const { return !measured_.empty() || machine_.has_value(); }

  /// Seconds on `nodes` nodes, so many of which share a core.
  double seconds(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                 double ranks_per_core = 1) const;

  /// No size takes less for each of its bytes, on hosts of the machine.
  double least_s_per_byte(std::uint32_t nodes, const LinkCosts& link) const;

  /// What a reader must know of costs for so many nodes ("not measured: …"); empty if they were
  /// measured.
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  double core_s(int nodes, std::int64_t bytes) const;
  double core_share(int nodes, std::int64_t bytes) const;
  bool is_modelled(std::uint32_t nodes, const LinkCosts& link) const;
  Ranks ranks(std::uint32_t nodes, const LinkCosts& link) const;
  double modelled_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;

  const CollectiveRow& row_;
  LinkCosts link_;
  GatherCosts measured_;
  std::optional<Machine> machine_;
  int cores_ = 0;  ///< that the measured ranks shared; 0: it was not cores that limited them
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
  double gather_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                  double ranks_per_core = 1) const;
  double reduce_scatter_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                          double ranks_per_core = 1) const;
  double all_to_all_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                      double ranks_per_core = 1) const;
  /// As CollectiveCosts, of gathers and reductions.
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  AllReduceCosts all_reduce_;
  CollectiveCosts gather_, reduce_scatter_, all_to_all_;
};

}  // namespace hipress::costs
