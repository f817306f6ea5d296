#pragma once

namespace hipress::costs {

/// How far runs may be from a profile's costs: standard deviations of the factors' logarithms
/// (0.1: two runs in three are within 10 %). A run draws each factor once, for all of its work: a
/// machine that is slow is slow for every kernel. Larger: wider intervals.
struct Spread {
  double host = 0;        ///< kernels and the CPU time of transfers, from run to run
  double links = 0;       ///< bandwidths, overheads and latencies, from run to run
  double compute = 0;     ///< forward and backward
  double model = 0;       ///< of communication, what no cost explains: the simulator's own error
  double iterations = 0;  ///< from one iteration of a run to the next
  bool operator==(const Spread&) const = default;
};

/// Largest that each may be in a file.
inline constexpr double kMaxSpread = 2;

/// The speed that a short fixed piece of work reached when a profile was measured, in bytes per
/// second; 0: not measured. A comparison with its speed now shows whether the machine is as fast as
/// it was then.
struct Probes {
  double copy = 0;       ///< memory, read and written once each
  double codec = 0;      ///< gradient bytes through onebit's encode
  double transport = 0;  ///< from one rank to another, over the transport
  bool operator==(const Probes&) const = default;
};

}  // namespace hipress::costs
