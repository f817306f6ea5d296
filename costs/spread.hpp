#pragma once

namespace hipress::costs {

/// Variation of runs around a profile's costs. A run draws one factor per cost for all of its work:
/// a slow machine is slow for every kernel. The values are standard deviations of the factors'
/// logarithms (0.1: two runs in three are within 10 %). Larger values mean wider intervals.
struct Spread {
  double host = 0;        ///< kernels and CPU time of transfers, from run to run
  double links = 0;       ///< bandwidths, overheads and latencies, from run to run
  double compute = 0;     ///< forward and backward
  double model = 0;       ///< the simulator's own error in communication
  double iterations = 0;  ///< iterations within a run
  bool operator==(const Spread&) const = default;
};

/// Maximum of each value in a file.
inline constexpr double kMaxSpread = 2;

/// Speeds of short fixed work when the profile was measured, in bytes per second; 0: not measured.
/// A comparison with present speeds shows whether the machine is still as fast.
struct Probes {
  double copy = 0;       ///< memory, read and written once each
  double codec = 0;      ///< gradient bytes through onebit's encode
  double transport = 0;  ///< from one rank to another, over the transport
  bool operator==(const Probes&) const = default;
};

}  // namespace hipress::costs
