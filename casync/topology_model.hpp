#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"

/// Models of topologies for callers that never expand them: the coarse pattern by which searches
/// rank plans, and the terms of the lower bound (docs/bound.md derives them). All times are in
/// picoseconds, as doubles.
namespace hipress::casync {

/// Costs of one slice, in ps.
struct SliceCosts {
  double encode = 0, decode = 0, add = 0;
  double message = 0;  ///< time of its message alone
  double port = 0;     ///< work of its message on a port
};

/// The slices of one unit. All have the length of the first, except the last, which may be shorter.
struct Slices {
  std::int64_t count = 0;
  SliceCosts first, last;
  SliceCosts total;  ///< sum over all slices, as load on a resource
  SliceCosts first_load, last_load;
};

/// Lower bounds of a message's costs besides its bytes.
struct Wire {
  double nodes = 1;
  double latency = 0;
  double burst = 0;  ///< work that a port lets through at once

  /// One message through a port.
  double hop(const SliceCosts& slice) const;
  /// N-1 messages through a port, one after the other.
  double fan(const SliceCosts& slice) const;
};

/// Work of one unit on one kind of resource. A node has `all`, plus `served` for every partition
/// that it serves (`served_last` for the last partition, which may be shorter). `average` is the
/// mean over nodes.
struct Work {
  double average = 0;
  double all = 0;
  double served = 0;
  double served_last = 0;
};

/// Lower bounds of a unit's load on ports (each egress and each ingress) and codec streams.
struct Loads {
  Work port, codec;
  std::uint32_t servers = 0;  ///< number of partitions that nodes g, g+1, … mod N serve; 0: the
                              ///< whole load is in `all`
};

/// The terms of the lower bound. All but `loads` require at least two nodes.
struct BoundTerms {
  /// Time from the first node's ready time until the first slice is synchronised.
  double (*chain)(const Slices& slices, const Wire& wire);
  /// Time from the first node's ready time until all slices are synchronised. A node encodes and
  /// decodes them one by one.
  double (*piped)(const Slices& slices, const Wire& wire);
  /// Time from the last node's ready time until a slice is synchronised.
  double (*chain_of_last)(const SliceCosts& slice, const Wire& wire);
  /// Time from the sum of a raw slice to the last arrival of its mean.
  double (*spread)(const SliceCosts& slice, const Wire& wire);
  Loads (*loads)(const Slices& slices, const Wire& wire);
  /// Lower bound of the number of one partition's messages that leave a host for a different one,
  /// as the mean over hosts. `host` gives the host of each node.
  double (*crossings)(std::span<const std::uint32_t> host);
  /// Time from the first node's ready time until some node has the mean of a raw slice, which the
  /// next stage's encode waits for. Null: unknown.
  double (*gathered)(const SliceCosts& slice, const Wire& wire) = nullptr;
};

/// Numbers of steps.
using StepIds = std::vector<std::uint32_t>;

/// Collects the steps of a coarse pattern: one node's mean share of a unit, phase by phase.
class CoarsePattern {
 public:
  virtual ~CoarsePattern() = default;
  /// Adds a phase after all of `after`; returns its number. The phase is work on codec streams or
  /// ports, followed by a latency. The busiest node needs `stretch` times the mean work.
  virtual std::uint32_t add(Resource resource, double work, double stretch, double latency,
                            const StepIds& after) = 0;
};

/// Inputs of a coarse pattern.
struct CoarseCosts {
  std::uint32_t nodes = 1;
  double share = 1;    ///< partitions per node
  double message = 0;  ///< time of one slice's message, as all below
  double encode = 0;   ///< 0: no encode
  double add = 0;
  double decode = 0;   ///< 0: no decode
  double latency = 0;  ///< latency of the wire
};

/// Adds one unit's phases behind `start`; returns those after which it is synchronised.
using AddCoarsePattern = StepIds (*)(CoarsePattern& pattern, const CoarseCosts& costs,
                                     const StepIds& start);

}  // namespace hipress::casync
