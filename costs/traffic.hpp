#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/curve.hpp"
#include "costs/profile.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::costs {

using kernels::Traffic;
inline constexpr double kMergeTraffic = 12;  ///< reads two addends, writes the sum

/// Minimum memory traffic of a built-in algorithm with default parameters; nullopt for any other.
std::optional<Traffic> least_traffic(const std::string& algorithm);

/// Estimated costs of an algorithm: its minimum traffic at KernelEstimate's share of the memory
/// bandwidth, to five digits, and its launches. nullopt without Profile::estimate, for algorithms
/// whose messages are factors, and for those of unknown traffic.
std::optional<CodecCosts> estimated_costs(const Profile& profile, const std::string& algorithm);

/// Adds estimated costs to the profile for every known algorithm that has none.
void add_estimated_costs(Profile& profile);

/// Number of elements of a slice so large that launches are negligible.
inline constexpr std::int64_t kLargeSlice = std::int64_t{1} << 26;

/// Share of `bandwidth` (of memory, bytes per second) that work with traffic `bytes_per_element`
/// uses in a slice of kLargeSlice.
double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth);

}  // namespace hipress::costs
