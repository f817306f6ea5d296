#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::profiler {

/// Prints a profile on stdout. `path` is the file that it was written to.
void print(const costs::Profile& profile, const std::string& path);

}  // namespace hipress::profiler
