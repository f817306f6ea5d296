#pragma once

#include <cstdint>
#include <string>

#include "requests/hooks.hpp"

/// Profiles of this machine's kernels, which jobs that plan themselves measure once.
namespace hipress::requests {

/// Largest number of ranks whose links within the machine such a profile has.
inline constexpr std::uint32_t kMostCachedRanks = 4;

/// Path, in the cache folder, of the profile of these algorithms (a list separated by commas) on
/// this machine, and of its internal links between `ranks` ranks, or kMostCachedRanks. Throws
/// io::InputError without a cache folder.
std::string cached_profile_path(const std::string& algorithms, std::uint32_t ranks);

/// Returns that path. If there is no such file, measures first, in 15 seconds or more, with a note.
std::string cached_profile(const std::string& algorithms, std::uint32_t ranks, const Hooks& hooks);

}  // namespace hipress::requests
