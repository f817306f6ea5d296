#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "replay/timelines.hpp"

namespace hipress::replay {

/// The records of some iterations: of all while there is room, then of a random sample of them
/// (Vitter's algorithm R). So memory does not grow with their number, and times that drift are
/// sampled like others. Ranks that add equally many records keep the same ones.
class RunSample {
 public:
  /// With room for `most`, and at least one.
  explicit RunSample(std::size_t most) : most_(most > 0 ? most : 1) {}

  void add(RecordedRun run);
  /// Of the records kept, the one whose time is nearest to the median of `times_s`, the times of
  /// all iterations that were added. The median of an even number is the lower one of the middle
  /// two. If all records are kept, the result is the median iteration itself.
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
