#include "replay/run_sample.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hipress::replay {

void RunSample::add(RecordedRun run) {
  const std::size_t iteration = added_++;
  if (kept_.size() < most_) {
    kept_.push_back({iteration, std::move(run)});
    return;
  }
  // std::uniform_int_distribution differs between compilers.
  const std::size_t place = random_() % added_;
  if (place < most_) kept_[place] = {iteration, std::move(run)};
}

const RecordedRun& RunSample::nearest_to_median(std::span<const double> times_s) const {
  std::vector<double> sorted(times_s.begin(), times_s.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::ranges::nth_element(sorted, middle);
  const auto distance = [&](const Kept& kept) {
    return std::fabs(times_s[kept.iteration] - *middle);
  };
  return std::ranges::min_element(kept_, {}, distance)->run;
}

}  // namespace hipress::replay
