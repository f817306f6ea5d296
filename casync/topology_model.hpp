#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"

/// Costs of topologies for callers that do not expand them: the coarse pattern by which searches
/// rank plans, and the terms of the lower bound (derived in docs/bound.md). All times are in
/// picoseconds, as doubles.
namespace hipress::casync {

/// Costs of one slice, in ps.
struct SliceCosts {
  double encode = 0, decode = 0, add = 0;
  double message = 0;  ///< time of its message on an idle network
  double port = 0;     ///< load of its message on a port
};

/// The slices of one unit. All have the length of the first, except the last, which may be shorter.
struct Slices {
  std::int64_t count = 0;
  SliceCosts first, last;
  SliceCosts total;  ///< sum over all slices, as load on resources
  SliceCosts first_load, last_load;
};

/// Costs of messages that do not depend on their bytes, as lower bounds.
struct Wire {
  double nodes = 1;
  double latency = 0;
  double burst = 0;  ///< load that a port lets through at once

  /// Time of one message through a port, less the burst.
  double hop(const SliceCosts& slice) const;
  /// Time of N-1 messages through a port, one after the other, less the burst.
  double fan(const SliceCosts& slice) const;
};

/// Load of one unit (gradient, bulk group or factor) on one kind of resource. Every node has the
/// load `all`. A node that serves partitions of the unit has `served` more for each (`served_last`
/// for the last partition, which may be shorter). `average` is the mean over nodes.
struct Work {
  double average = 0;
  double all = 0;
  double served = 0;
  double served_last = 0;
};

/// Lower bounds of a unit's load on ports (each egress and each ingress) and codec streams.
struct Loads {
  Work port, codec;
  std::uint32_t servers = 0;  ///< number of partitions; nodes g, g+1, … mod N serve one each (g:
                              ///< the unit's index). 0: the whole load is in `all`
};

/// The terms of the lower bound. All but `loads` require at least two nodes.
struct BoundTerms {
  /// Time from the first node's ready time until the first slice is synchronised.
  double (*chain)(const Slices& slices, const Wire& wire);
  /// Time from the first node's ready time until all slices are synchronised, given that a node
  /// encodes and decodes them one by one.
  double (*piped)(const Slices& slices, const Wire& wire);
  /// Time from the last node's ready time until a slice is synchronised.
  double (*chain_of_last)(const SliceCosts& slice, const Wire& wire);
  /// Time from when a raw slice's sum is complete until its mean has arrived at the last node.
  double (*spread)(const SliceCosts& slice, const Wire& wire);
  Loads (*loads)(const Slices& slices, const Wire& wire);
  /// Lower bound of the number of one partition's messages between hosts, divided by the number of
  /// hosts. `host` gives the host of each node.
  double (*crossings)(std::span<const std::uint32_t> host);
  /// Time from the first node's ready time until the first node has the mean of a raw slice. The
  /// next stage's encode waits for it. Null: unknown.
  double (*gathered)(const SliceCosts& slice, const Wire& wire) = nullptr;
};

/// Phases of a coarse pattern, by number.
using StepIds = std::vector<std::uint32_t>;

/// Collects the phases of a coarse pattern, which are one node's mean share of the work for a unit.
class CoarsePattern {
 public:
  virtual ~CoarsePattern() = default;
  /// Adds a phase after all of `after`; returns its number. A phase is work on codec streams or
  /// ports, then a latency. On the busiest node, the work is `stretch` times the mean.
  virtual std::uint32_t add(Resource resource, double work, double stretch, double latency,
                            const StepIds& after) = 0;
};

/// Inputs of a coarse pattern.
struct CoarseCosts {
  std::uint32_t nodes = 1;
  double share = 1;    ///< partitions per node
  double message = 0;  ///< time of one slice's message; the times below are also per slice
  double encode = 0;   ///< 0: no encode
  double add = 0;
  double decode = 0;   ///< 0: no decode
  double latency = 0;  ///< latency of the wire
};

/// Adds one unit's phases after `start`; returns the phases after which the unit is synchronised.
using AddCoarsePattern = StepIds (*)(CoarsePattern& pattern, const CoarseCosts& costs,
                                     const StepIds& start);

}  // namespace hipress::casync
