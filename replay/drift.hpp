#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/profile.hpp"
#include "costs/spread.hpp"

/// A machine that is not always as fast, a virtual one say, is noticed by probes: before and after
/// what is measured, and when its profile was measured.
namespace hipress::replay {

/// How many times as fast a machine is as it was; none: not probed then, or now.
struct Drift {
  std::optional<double> copy, codec, transport;
  bool operator==(const Drift&) const = default;
};
Drift drift(const costs::Probes& now, const costs::Probes& then);

/// The probes half way between two.
costs::Probes between(const costs::Probes& one, const costs::Probes& other);

/// How far apart probes are: the largest logarithm of a ratio, of either sign.
double movement(const costs::Probes& one, const costs::Probes& other);

/// The movement that a profile's spread explains: two standard deviations of its host costs, and
/// what short probes vary by themselves (10 %).
double explained(const costs::Spread& spread);

/// Whether one of the ratios is beyond that.
bool is_beyond(const Drift& drift, const costs::Spread& spread);

/// A sentence about such ratios, with the remedy: "the machine is not as it was when
/// profiled (copying 1.7 times as fast): profile it again". Empty without any.
std::string describe(const Drift& drift, const costs::Spread& spread);

/// What was measured between probes.
struct Watched {
  costs::Probes probes;  ///< half way between those before and those after
  double moved = 0;      ///< between these, or 0 where that is explained
  int times = 1;         ///< that it was measured; the last one counts
};

/// Calls `work`, which measures something and returns the spread to be expected, between two calls
/// of `probe`. If these differ by more than the spread explains, it is measured and probed again,
/// up to `again` times.
Watched watch(const std::function<costs::Probes()>& probe,
              const std::function<costs::Spread()>& work, int again);

/// The spread where so much movement was left: no less than it.
costs::Spread widened(costs::Spread spread, double moved);

/// Beginning of the sentence about a machine whose speed changed during a measurement.
inline constexpr std::string_view kMoved = "the machine's speed varied";
/// A sentence about movement that was left: "the machine's speed varied by 33 % during profiling
/// (second attempt), so the intervals are wide". Empty without any.
std::string describe_movement(const Watched& watched, std::string_view during);

/// The profile with its host costs as the drift says: codecs by the codec's ratio, merges by that
/// of copies, the CPU time of transfers, and links where they are loopback, by that of transfers.
costs::Profile as_fast_as_now(const costs::Profile& profile, const Drift& drift);

}  // namespace hipress::replay
