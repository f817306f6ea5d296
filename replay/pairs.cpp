#include "replay/pairs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace hipress::replay {
namespace {

/// 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom.
constexpr std::array kT = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36};
static_assert(kT.size() == kMostPairs - 1);
/// Least standard deviation of the logarithms of speedups, as no measurement is better.
constexpr double kLeastSpread = 0.003;
constexpr double kWorth = 0.005;  // logarithm of the least speedup that is worth a plan
/// Slowdown above which a plan is rejected, even after one pair.
constexpr double kHopeless = 1.3;

}  // namespace

Speedups judge(std::span<const double> speedups) {
  if (speedups.empty()) return {};
  const auto count = static_cast<double>(speedups.size());
  double mean = 0;
  for (const double speedup : speedups) mean += std::log(speedup) / count;
  double squares = 0;
  for (const double speedup : speedups) squares += std::pow(std::log(speedup) - mean, 2);
  Speedups made{.mean = std::exp(mean)};
  if (mean < -std::log(kHopeless) || speedups.size() >= kMostPairs) {
    made.verdict = Verdict::kNotFaster;
  }
  if (speedups.size() == 1) return made;
  const double spread = std::max(std::sqrt(squares / (count - 1)), kLeastSpread);
  const double noise = kT[std::min(speedups.size() - 2, kT.size() - 1)] * spread / std::sqrt(count);
  made.low = std::exp(mean - noise);
  made.high = std::exp(mean + noise);
  if (mean - noise > 0 && mean > kWorth) made.verdict = Verdict::kFaster;
  if (mean + noise < kWorth) made.verdict = Verdict::kNotFaster;
  return made;
}

}  // namespace hipress::replay
