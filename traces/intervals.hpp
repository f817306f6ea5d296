#pragma once

#include <cstdint>
#include <vector>

namespace hipress::traces {

/// A time from `begin` up to `end`, in nanoseconds.
struct Interval {
  std::int64_t begin = 0, end = 0;
};

/// Times as intervals that are sorted and do not touch each other.
class TimeSet {
 public:
  TimeSet() = default;
  /// Of intervals in any order, which may overlap; those of no length are left out.
  explicit TimeSet(std::vector<Interval> intervals);
  std::int64_t length() const;
  /// What lies in the window.
  TimeSet within(const Interval& window) const;
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::vector<Interval> intervals_;
};

inline double to_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

/// Of at least one time.
double median(std::vector<double> times);

/// The times in one or the other.
TimeSet both(const TimeSet& a, const TimeSet& b);

/// The length of what is in `a` and not in `b`.
std::int64_t length_outside(const TimeSet& a, const TimeSet& b);

}  // namespace hipress::traces
