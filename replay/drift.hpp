#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/profile.hpp"
#include "costs/spread.hpp"

/// Detects changes of a machine's speed, as on virtual machines. Probes, which are short fixed
/// pieces of work, run before and after a measurement, and when a profile is measured.
namespace hipress::replay {

/// Ratio of a machine's speed now to its speed then, per probe; unset if not probed both times.
struct Drift {
  std::optional<double> copy, codec, transport;
  bool operator==(const Drift&) const = default;
};
Drift drift(const costs::Probes& now, const costs::Probes& then);

/// Geometric mean of two results of probes.
costs::Probes between(const costs::Probes& one, const costs::Probes& other);

/// Distance between two results of probes: the largest absolute logarithm of a ratio of speeds.
double movement(const costs::Probes& one, const costs::Probes& other);

/// The movement that a profile's spread explains: two standard deviations of its host costs, but at
/// least 0.10, by which short probes vary on an unchanged machine.
double explained(const costs::Spread& spread);

/// True if one of the ratios moved by more than explained().
bool is_beyond(const Drift& drift, const costs::Spread& spread);

/// A sentence about the ratios of a drift, with the remedy: "the machine is not as it was when
/// profiled (copying 1.7 times as fast): profile it again". Empty unless is_beyond().
std::string describe(const Drift& drift, const costs::Spread& spread);

/// Probes around a measurement.
struct Watched {
  costs::Probes probes;  ///< geometric mean of those before and after the last attempt
  double moved = 0;      ///< movement between these; 0 if the spread explains it
  int times = 1;         ///< number of attempts; the last one counts
};

/// Calls `work` between two calls of `probe`. `work` measures something and returns its expected
/// spread. If the probes differ by more than the spread explains, it measures and probes again, up
/// to `again` times.
Watched watch(const std::function<costs::Probes()>& probe,
              const std::function<costs::Spread()>& work, int again);

/// The spread with `host` increased to the remaining movement, but not above costs::kMaxSpread.
costs::Spread widened(costs::Spread spread, double moved);

/// Beginning of the sentence about a machine whose speed changed during a measurement.
inline constexpr std::string_view kMoved = "the machine's speed varied";
/// A sentence about remaining movement: "the machine's speed varied by 33 % during profiling
/// (second attempt), so the intervals are wide". Empty without remaining movement.
std::string describe_movement(const Watched& watched, std::string_view during);

/// The profile with host costs scaled by the drift: codecs by the codec's ratio, merges and memory
/// bandwidth by that of copies, and the CPU time of transfers by that of the transport. If ranks
/// share a host, links scale like the transport, too.
costs::Profile as_fast_as_now(const costs::Profile& profile, const Drift& drift);

}  // namespace hipress::replay
