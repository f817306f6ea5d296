#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// The profile that a file of these bytes holds. InputError as of read_profile, naming `path`.
Profile parse_profile(const std::string& bytes, const std::string& path);

}  // namespace hipress::costs
