#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "replay/timelines.hpp"

namespace hipress::replay {

/// Reservoir of recorded iterations, of bounded memory. It holds all iterations while there is
/// room, then a uniform random sample (Vitter's algorithm R). Ranks that add the same number of
/// records keep the same ones.
class RunSample {
 public:
  /// Capacity: `most` records, at least one.
  explicit RunSample(std::size_t most) : most_(most > 0 ? most : 1) {}

  void add(RecordedRun run);
  /// The kept record whose time is nearest to the median of `times_s`, the times of all iterations
  /// that were added. The median of an even number is the lower one of the middle two. If all
  /// records are kept, the result is the median iteration itself.
  const RecordedRun& nearest_to_median(std::span<const double> times_s) const;

 private:
  struct Kept {
    std::size_t iteration;
    RecordedRun run;
  };
  std::size_t most_;
  std::size_t added_ = 0;
  std::vector<Kept> kept_;
  std::mt19937_64 random_;
};

}  // namespace hipress::replay
