#pragma once

#include <cstdint>

#include "costs/profile.hpp"

/// Rates of a profile's curves at one size, for display.
namespace hipress::profiler {

/// Slice size, in elements, for which rates are shown. Codecs spend most of their time near it.
inline constexpr std::int64_t kRateElements = std::int64_t{1} << 22;
/// Rates of stages are for a square matrix of kRateElements elements, with this rank.
inline constexpr std::int64_t kRateRows = std::int64_t{1} << 11;
inline constexpr int kRateRank = 4;

// Gradient bytes per second.
double rate(const costs::Curve& curve);
double encode_rate(const costs::CodecCosts& costs);  ///< all encodes of a step
double decode_rate(const costs::CodecCosts& costs);

}  // namespace hipress::profiler
