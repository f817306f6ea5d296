#include "profiler/rates.hpp"

namespace hipress::profiler {
namespace {

constexpr std::int64_t kFactor = kRateRows * kRateRank;

double rate_of(double seconds) { return 4.0 * kRateElements / seconds; }

}  // namespace

double rate(const costs::Curve& curve) { return rate_of(curve(kRateElements)); }

double encode_rate(const costs::CodecCosts& costs) {
  double seconds = costs.encode(kRateElements);
  for (const auto& stage : costs.stages)
    seconds += costs::stage_seconds(stage, kRateElements, kFactor, kRateRank);
  return rate_of(seconds);
}

double decode_rate(const costs::CodecCosts& costs) {
  const auto factors = static_cast<std::int64_t>(costs.stages.size()) * kFactor;
  return rate_of(costs.decode(kRateElements) +
                 costs::stage_seconds(costs.decode_stages, kRateElements, factors, kRateRank));
}

}  // namespace hipress::profiler
