#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/collective_model.hpp"
#include "costs/profile.hpp"

namespace hipress::costs {

/// A library's collective, and the ideal time that it is assumed to take where it was not measured.
struct CollectiveRow {
  const char* name;     ///< "all-reduce"
  const char* formula;  ///< text of ideal_s's formula
  double (*ideal_s)(double nodes, std::int64_t bytes, const LinkCosts& link);
  GatherCosts Profile::*measured;
  Operation operation;  ///< its name in collective_model.hpp
};
/// Ideal times: rings of N−1 steps of o + S/(N·B) + L each; an all-reduce has twice as many. An
/// all-to-all sends N−1 messages one after the other: (N−1)·o + (N−1)/N·S/B + L.
extern const CollectiveRow kAllReduce, kAllGather, kReduceScatter, kAllToAll;

/// Lower bound on a collective's time in seconds, on any machine: its bytes on that link.
double wire_s(const CollectiveRow& row, std::uint32_t nodes, std::int64_t bytes,
              const LinkCosts& link);

/// Shares of a collective's duration during which its bytes keep busy a GPU's port into the fabric
/// (within), and the GPU's part of its host's cards (between). 0 without a machine.
struct PortShares {
  double within = 0, between = 0;
};

/// Cost model of a library's collective, from a profile's measurements. `bytes` is the size of all
/// shards together, which each node holds before or after the collective.
///
/// On the profile's own link, a number of nodes that was measured takes the measured time.
/// Otherwise the time has two parts:
///  - the *wire time*: the ideal time on that link, a lower bound.
///  - the *core time*: the measured excess over the ideal time on the profile's own link. It does
///    not depend on the link, and is added. If cores limit the profile's link, as on a loopback,
///    all of the measured time is core time. It overlaps with the wire time, so the longer of the
///    two counts, and ranks that share a core take turns.
/// The core time is a multiple of the ideal time on the profile's link. Its factor is interpolated
/// linearly between measured numbers of nodes, and constant beyond them. Without measurements, the
/// ideal time is used.
///
/// On hosts of a machine (Profile::machine, LinkCosts::span), an unmeasured collective takes the
/// time of collective_time(), times measured / modelled time at the nearest measured number of
/// nodes.
class CollectiveCosts {
 public:
  CollectiveCosts(const Profile& profile, const CollectiveRow& row);

  /// True if there are measurements or a machine; otherwise times are ideal.
  bool is_known() const { return !measured_.empty() || machine_.has_value(); }

  /// Seconds on `nodes` nodes, `ranks_per_core` of which share a core.
  double seconds(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                 double ranks_per_core = 1) const;

  PortShares port_shares(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link) const;

  /// Lower bound in seconds per byte that holds at any size on hosts of the machine; 0 if unknown.
  double least_s_per_byte(std::uint32_t nodes, const LinkCosts& link) const;

  /// Warning about costs for this number of nodes ("… was not measured: …"); empty if they were
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
  int cores_ = 0;  ///< cores that the measured ranks shared; 0: cores were not the limit
};

class AllReduceCosts : public CollectiveCosts {
 public:
  explicit AllReduceCosts(const Profile& profile) : CollectiveCosts(profile, kAllReduce) {}
};

/// Costs of the collectives of sharded training. An unmeasured all-gather or reduce-scatter takes
/// half the time of an all-reduce.
class ShardCosts {
 public:
  explicit ShardCosts(const Profile& profile);
  double gather_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                  double ranks_per_core = 1) const;
  double reduce_scatter_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                          double ranks_per_core = 1) const;
  double all_to_all_s(std::uint32_t nodes, std::int64_t bytes, const LinkCosts& link,
                      double ranks_per_core = 1) const;
  const CollectiveCosts& gather() const { return gather_; }
  const CollectiveCosts& reduce_scatter() const { return reduce_scatter_; }
  const CollectiveCosts& all_to_all() const { return all_to_all_; }
  /// Diagnostics of all-gathers and reduce-scatters; see CollectiveCosts::diagnostic().
  std::string diagnostic(std::uint32_t nodes) const;

 private:
  AllReduceCosts all_reduce_;
  CollectiveCosts gather_, reduce_scatter_, all_to_all_;
};

}  // namespace hipress::costs
