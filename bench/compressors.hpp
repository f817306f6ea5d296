#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hipress::bench {

/// Compressor of bytes, which runs on one core, from another project's library.
struct Compressor {
  std::string name;
  /// Compresses numbers of `width` bytes each. Returns the size; 0 if `room` bytes are too few.
  std::function<std::size_t(const void* from, std::size_t bytes, int width, void* to,
                            std::size_t room)>
      compress;
  /// Decompresses, and returns true if the result has `bytes` bytes.
  std::function<bool(const void* from, std::size_t compressed, void* to, std::size_t bytes)>
      decompress;
};

/// Loads zstd, lz4 and blosc2, if this machine has their shared libraries; the build does not need
/// them. Adds a line to `skipped` for each missing one, with the package that provides it.
std::vector<Compressor> compressors(std::vector<std::string>& skipped);

}  // namespace hipress::bench
