#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// The profile that a file of these bytes holds. InputError as of read_profile, naming `path`.
Profile parse_profile(const std::string& bytes, const std::string& path);

/// The shortest text that reads back as exactly this value, in a unit for people where possible.
std::string exact_bandwidth(double bytes_per_s);
std::string exact_duration(double seconds);

}  // namespace hipress::costs
