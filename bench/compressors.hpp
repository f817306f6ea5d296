#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hipress::bench {

/// A general compressor of bytes, on one core, as somebody else's library offers it.
struct Compressor {
  std::string name;
  /// Compresses `bytes` of numbers of `width` bytes into `room` bytes; 0: there is not enough room.
  std::function<std::size_t(const void* from, std::size_t bytes, int width, void* to,
                            std::size_t room)>
      compress;
  /// Whether `to` has the `bytes` bytes that were compressed.
  std::function<bool(const void* from, std::size_t compressed, void* to, std::size_t bytes)>
      decompress;
};

/// zstd, lz4 and blosc2 as far as this machine has their shared libraries, which the build does not
/// need; what is missing is added to `skipped`, with the Debian package that has it.
std::vector<Compressor> compressors(std::vector<std::string>& skipped);

}  // namespace hipress::bench
