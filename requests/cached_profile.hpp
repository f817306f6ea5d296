#pragma once

#include <cstdint>
#include <string>

#include "requests/hooks.hpp"

/// Profiles of this machine's kernels, which jobs that plan themselves measure once.
namespace hipress::requests {

/// Largest number of ranks between which such a profile has measured links within the machine.
inline constexpr std::uint32_t kMostCachedRanks = 4;

/// Path in the cache folder of this machine's profile: costs of `algorithms` (separated by commas),
/// and of links within the machine between `ranks` ranks (2 to kMostCachedRanks). Throws
/// io::InputError if there is no cache folder.
std::string cached_profile_path(const std::string& algorithms, std::uint32_t ranks);

/// Returns that path. If the file is missing, measures it first (15 seconds or more), with a note.
std::string cached_profile(const std::string& algorithms, std::uint32_t ranks, const Hooks& hooks);

}  // namespace hipress::requests
