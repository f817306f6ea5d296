#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hipress::bench {

/// General compressor of bytes on one core, from a library of others.
struct Compressor {
  std::string name;
  /// Compresses `bytes` of numbers of `width` bytes into `room` bytes; 0: there is not enough room.
  std::function<std::size_t(const void* from, std::size_t bytes, int width, void* to,
                            std::size_t room)>
      compress;
  /// Decompresses, and returns true if the result has `bytes` bytes.
  std::function<bool(const void* from, std::size_t compressed, void* to, std::size_t bytes)>
      decompress;
};

/// Compressors zstd, lz4 and blosc2, if this machine has their shared libraries, which the build
/// does not need. Adds each missing one to `skipped`, with the Debian package that has it.
std::vector<Compressor> compressors(std::vector<std::string>& skipped);

}  // namespace hipress::bench
