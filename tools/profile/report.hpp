#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "costs/profile.hpp"

/// What hipress-profile prints of a profile that it wrote to `path`.
namespace hipress::profiler {

/// For programs.
nlohmann::json to_json(const costs::Profile& profile, const std::string& path);
/// For people, on stdout.
void print(const costs::Profile& profile, const std::string& path);

}  // namespace hipress::profiler
