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

/// Minimum memory traffic of a built-in algorithm with default parameters; nullopt for others.
std::optional<Traffic> least_traffic(const std::string& algorithm);

/// Estimated costs of an algorithm from its row of the table: its minimum traffic at a share of the
/// memory bandwidth, in seconds to five digits, and its launches. nullopt for profiles without
/// Profile::estimate, and for algorithms whose messages are factors or whose traffic is unknown.
std::optional<CodecCosts> estimated_costs(const Profile& profile, const std::string& algorithm);

/// Adds estimated costs to the profile for every algorithm of the table that has none.
void add_estimated_costs(Profile& profile);

/// Elements of a slice large enough that launches are negligible.
inline constexpr std::int64_t kLargeSlice = std::int64_t{1} << 26;

/// Share of a memory bandwidth (bytes per second) that work of `bytes_per_element` uses, in slices
/// of kLargeSlice.
double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth);

}  // namespace hipress::costs
