#include "sim/waiting.hpp"

namespace hipress::sim {

/// Sorts tasks that mostly are in order already, or (a server's partitions) in a rotated order.
void WaitingQueue::Sorter::sort(Ready* begin, Ready* end) {
  places_.clear();
  std::size_t descents = 0, descent = 0;
  for (const Ready* task = begin; task != end; ++task) {
    places_.push_back(place(*task));
    const std::size_t last = places_.size() - 1;
    if (last > 0 && places_[last] < places_[last - 1]) {
      ++descents;
      descent = last;
    }
  }
  if (descents == 0) return;
  if (descents == 1 && places_.back() < places_.front()) {
    std::rotate(begin, begin + descent, end);
    return;
  }
  std::sort(places_.begin(), places_.end());
  for (std::size_t i = 0; i < places_.size(); ++i) begin[i].id = places_[i].id();
}

/// Sorts the unsorted tasks, and merges them with sorted ones of the same ready time.
void WaitingQueue::sort_latest(Sorter& sorter) {
  Ready* const begin = tasks_.data();
  Ready* const end = begin + tasks_.size();
  Ready* const added = begin + sorted_;
  if (end - added > 1) sorter.sort(added, end);
  Ready* first = added;
  while (first > begin + next_ && first[-1].time == added->time) --first;
  if (first != added) {
    std::inplace_merge(first, added, end,
                       [&](const Ready& a, const Ready& b) { return sorter.before(a, b); });
  }
  sorted_ = static_cast<std::uint32_t>(tasks_.size());
}

void WaitingQueue::drop_taken() {
  tasks_.erase(tasks_.begin(), tasks_.begin() + static_cast<std::ptrdiff_t>(next_));
  sorted_ -= std::min(sorted_, next_);
  next_ = 0;
}

}  // namespace hipress::sim
