#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Parses the content of a profile file. InputError as read_profile(), naming `path`.
Profile parse_profile(const std::string& bytes, const std::string& path);

}  // namespace hipress::costs
