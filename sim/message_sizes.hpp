#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "costs/profile.hpp"

namespace hipress::sim {

/// Bytes of the message of a slice of so many elements.
using MessageBytes = std::function<std::int64_t(std::int64_t elements)>;

/// The messages that a prediction takes for an algorithm's: `bound`, or, where their length varies
/// with the data and the profile has a sample (CodecCosts::message_share), that share of it,
/// rounded up to a multiple of 4. Rooms and plans go by the bound nevertheless.
MessageBytes predicted_bytes(const costs::Profile& profile, const std::string& algorithm,
                             MessageBytes bound);

}  // namespace hipress::sim
