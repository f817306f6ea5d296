#pragma once

#include <cstddef>
#include <string>

namespace hipress::transport {

/// A shorter secret can be guessed.
inline constexpr std::size_t kMinSecretBytes = 16;

/// The secret for JobOptions::secret: all bytes of the file. io::InputError with the remedy if
/// other users may read or change it, or it is too short.
std::string read_secret_file(const std::string& path);

}  // namespace hipress::transport
