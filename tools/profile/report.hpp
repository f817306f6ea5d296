#pragma once

#include <string>

#include "costs/profile.hpp"

namespace hipress::profiler {

/// For people, on stdout: a profile that was written to `path`.
void print(const costs::Profile& profile, const std::string& path);

}  // namespace hipress::profiler
