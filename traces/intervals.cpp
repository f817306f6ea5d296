#include "traces/intervals.hpp"

#include <algorithm>

namespace hipress::traces {

TimeSet::TimeSet(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& one) { return one.end <= one.begin; });
  std::ranges::sort(intervals, {}, &Interval::begin);
  for (const Interval& one : intervals) {
    if (!intervals_.empty() && one.begin <= intervals_.back().end) {
      intervals_.back().end = std::max(intervals_.back().end, one.end);
    } else {
      intervals_.push_back(one);
    }
  }
}

std::int64_t TimeSet::length() const {
  std::int64_t sum = 0;
  for (const Interval& one : intervals_) sum += one.end - one.begin;
  return sum;
}

TimeSet TimeSet::within(const Interval& window) const {
  TimeSet inside;
  auto at = std::ranges::upper_bound(intervals_, window.begin, {}, &Interval::end);
  for (; at != intervals_.end() && at->begin < window.end; ++at) {
    const Interval part = {std::max(at->begin, window.begin), std::min(at->end, window.end)};
    if (part.begin < part.end) inside.intervals_.push_back(part);
  }
  return inside;
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

TimeSet both(const TimeSet& a, const TimeSet& b) {
  std::vector<Interval> all = a.intervals();
  all.insert(all.end(), b.intervals().begin(), b.intervals().end());
  return TimeSet(std::move(all));
}

std::int64_t length_outside(const TimeSet& a, const TimeSet& b) {
  return both(a, b).length() - b.length();
}

}  // namespace hipress::traces
