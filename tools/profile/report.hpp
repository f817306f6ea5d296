#pragma once

#include <string>

#include "costs/profile.hpp"
#include "io/document.hpp"

/// What hipress-profile prints of a profile that it wrote to `path`.
namespace hipress::profiler {

/// For programs: members in the order of their names.
io::Document to_json(const costs::Profile& profile, const std::string& path);
/// For people, on stdout.
void print(const costs::Profile& profile, const std::string& path);

}  // namespace hipress::profiler
