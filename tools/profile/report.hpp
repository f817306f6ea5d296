#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::profiler {

/// Prints a profile that was written to `path` on stdout.
void print(const costs::Profile& profile, const std::string& path);

}  // namespace hipress::profiler
