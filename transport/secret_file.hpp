#pragma once

#include <cstddef>
#include <string>

namespace hipress::transport {

/// Minimum length; a shorter secret can be guessed.
inline constexpr std::size_t kMinSecretBytes = 16;

/// Reads JobOptions::secret: all bytes of the file. Throws io::InputError with the remedy if other
/// users may read or change the file, or if it is too short.
std::string read_secret_file(const std::string& path);

}  // namespace hipress::transport
