#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::costs {

/// Parses the content of a profile file. Throws InputError as read_profile() does, naming `path`.
Profile parse_profile(const std::string& bytes, const std::string& path);

}  // namespace hipress::costs
