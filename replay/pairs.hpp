#pragma once

#include <optional>
#include <span>
#include <vector>

namespace hipress::replay {

/// Verdict on a plan by its speedups over another one, in pairs of blocks of iterations.
enum class Verdict { kOpen, kFaster, kNotFaster };

/// Speedups of a plan over another one, a number per pair of blocks.
struct Speedups {
  double mean = 1;                  ///< geometric mean
  std::optional<double> low, high;  ///< 95 % interval of the mean; none with fewer than two pairs
  Verdict verdict = Verdict::kOpen;
};

/// Largest number of pairs of blocks, after which an open verdict is kNotFaster.
inline constexpr std::size_t kMostPairs = 8;

/// Judges the speedups of the pairs so far. A plan is faster if the interval of the mean lies above
/// 1, and the mean above the least gain that is worth a plan, 0.5 %. It is not faster if the
/// interval ends below that, if the plan is far slower, be it in one pair, or if it is undecided
/// after kMostPairs. Speedups must be positive.
Speedups judge(std::span<const double> speedups);

}  // namespace hipress::replay
