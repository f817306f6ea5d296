#pragma once

#include <cstdint>
#include <vector>

namespace hipress::traces {

/// Half-open time interval, in nanoseconds.
struct Interval {
  std::int64_t begin = 0, end = 0;
};

/// Set of times, kept as sorted, disjoint intervals.
class TimeSet {
 public:
  TimeSet() = default;
  /// Union of intervals, given in any order. Ignores empty ones.
  explicit TimeSet(std::vector<Interval> intervals);
  std::int64_t length() const;
  /// Intersection with a window.
  TimeSet within(const Interval& window) const;
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::vector<Interval> intervals_;
};

inline double to_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

/// Median; `times` must not be empty.
double median(std::vector<double> times);

/// Union of two sets.
TimeSet both(const TimeSet& a, const TimeSet& b);

/// Length of the part of `a` outside of `b`, in nanoseconds.
std::int64_t length_outside(const TimeSet& a, const TimeSet& b);

}  // namespace hipress::traces
