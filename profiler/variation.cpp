#include "profiler/variation.hpp"

#include <algorithm>
#include <cmath>

#include "costs/assumed_spread.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {
namespace {

/// Interquartile range of a standard normal distribution.
constexpr double kInterquartileRange = 1.349;

constexpr double kMinHost = 0.03, kMinLinks = 0.005, kMinIterations = 0.01;
constexpr double kCompute = 0.02;
/// Error of the simulator itself: 0.6 to 1.2 % with raw gradients on networks of known speed. On
/// loopback, where transfers use cores instead of links, it is larger (docs/validation.md).
constexpr double kModel = 0.01, kModelOnLoopback = 0.03;

bool on_loopback(const Options& options) {
  return options.endpoint == nullptr && options.nccl == nullptr;
}

double between(double least, double deviation) {
  return std::clamp(deviation, least, costs::kMaxSpread);
}

}  // namespace

void Variation::add(const std::vector<double>& group_s) {
  if (group_s.size() < 2) return;
  const double median_s = median_of(group_s);
  const auto n = static_cast<double>(group_s.size());
  // A few values are closer to their own median than to the true one.
  const double correction = std::sqrt(n / (n - 1));
  for (const double value_s : group_s) {
    if (value_s > 0 && median_s > 0)
      logarithms_.push_back(correction * std::log(value_s / median_s));
  }
}

double Variation::deviation() const {
  if (logarithms_.empty()) return 0;
  std::vector<double> sorted = logarithms_;
  std::sort(sorted.begin(), sorted.end());
  return (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / kInterquartileRange;
}

costs::Spread Variations::spread(const Options& options) const {
  costs::Spread base;
  if (options.base != nullptr) base = costs::spread_of(*options.base);
  const bool new_links = options.base == nullptr || options.anew == Part::kLinks;
  // `passes` are of codecs, `runs` of the core time of transfers; the larger variation counts.
  const double host = std::max({passes.deviation(), runs.deviation(), base.host});
  const double measured_model = on_loopback(options) ? kModelOnLoopback : kModel;
  const double model = new_links ? measured_model : base.model;
  return {
      .host = between(kMinHost, host),
      .links = between(kMinLinks, new_links ? links.deviation() : base.links),
      .compute = kCompute,
      .model = model,
      .iterations = between(kMinIterations, new_links ? iterations.deviation() : base.iterations)};
}

}  // namespace hipress::profiler
