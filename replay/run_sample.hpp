#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "replay/timelines.hpp"

namespace hipress::replay {

/// The records of some of the iterations: of all while there is room, then of a random sample of
/// them (Vitter's algorithm R), so that memory does not grow with their number and times that drift
/// are sampled like others. Ranks that add as many keep the same ones.
class RunSample {
 public:
  /// With room for `most`, and at least one.
  explicit RunSample(std::size_t most) : most_(most > 0 ? most : 1) {}

  void add(RecordedRun run);
  /// Of those kept, the one whose time is nearest to the median of the `times_s`, which are those
  /// of all iterations that were added; of an even number the lower one of the middle two. It is
  /// that iteration itself where all are kept.
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
