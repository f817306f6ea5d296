#pragma once

#include <cstdint>

#include "costs/profile.hpp"

/// What a profile's curves come to at one size, for those who read it.
namespace hipress::profiler {

/// Elements of the slices whose rates are told: the size at which most of the time goes.
inline constexpr std::int64_t kRateElements = std::int64_t{1} << 22;
/// Stages are told of a square matrix of so many elements, and this rank.
inline constexpr std::int64_t kRateRows = std::int64_t{1} << 11;
inline constexpr int kRateRank = 4;

// Gradient bytes per second.
double rate(const costs::Curve& curve);
double encode_rate(const costs::CodecCosts& costs);  ///< all encodes of a step
double decode_rate(const costs::CodecCosts& costs);

}  // namespace hipress::profiler
