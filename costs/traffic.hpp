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

/// Of a built-in algorithm with its default parameters; nothing for others.
std::optional<Traffic> least_traffic(const std::string& algorithm);

/// Estimated costs of an algorithm, by its row of the table: its least traffic at a share of the
/// memory bandwidth, in seconds to five digits, and its launches. None for profiles that do not say
/// how kernels are estimated (Profile::estimate), and for algorithms whose messages are factors or
/// whose traffic is not known.
std::optional<CodecCosts> estimated_costs(const Profile& profile, const std::string& algorithm);

/// Puts the estimated costs of every algorithm of the table that has none into the profile.
void add_estimated_costs(Profile& profile);

/// Elements of a slice so large that what a launch costs does not count.
inline constexpr std::int64_t kLargeSlice = std::int64_t{1} << 26;

/// How much of a memory bandwidth (bytes per second) work uses that moves so many bytes per
/// element, in slices of kLargeSlice.
double share_of_bandwidth(const Curve& work, double bytes_per_element, double bandwidth);

}  // namespace hipress::costs
