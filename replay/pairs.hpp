#pragma once

#include <optional>
#include <span>
#include <vector>

namespace hipress::replay {

/// Verdict on a plan by its speedups over another one, in pairs of blocks of iterations.
enum class Verdict { kOpen, kFaster, kNotFaster };

/// Speedups of a plan over another one, a number per pair of blocks.
struct Speedups {
  double mean = 1;                 ///< geometric mean
  std::optional<double> low = {};  ///< 95 % interval of the mean; unknown with fewer than two pairs
  std::optional<double> high = {};  ///< end of that interval
  Verdict verdict = Verdict::kOpen;
};

/// Largest number of pairs of blocks, after which an open verdict is kNotFaster.
inline constexpr std::size_t kMostPairs = 8;

/// Judges the speedups of the pairs so far, which must be positive. A plan is faster if the whole
/// interval of the mean is above 1, and the mean above 1.005, a gain worth a plan. It is not faster
/// if the whole interval is below 1.005, if the mean is below 1/1.3 (one pair suffices), or if the
/// verdict is still open after kMostPairs.
Speedups judge(std::span<const double> speedups);

}  // namespace hipress::replay
