#include "bench/compressors.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>

namespace hipress::bench {

namespace {

/// Functions of a library, by name. The library stays loaded.
class Library {
 public:
  explicit Library(const char* file) : handle_(dlopen(file, RTLD_NOW)) {}
  explicit operator bool() const { return handle_ != nullptr; }

  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

/// zstd (zstd.h) at level 1, the fastest with entropy coding.
Compressor zstd(const Library& library) {
  auto* const compress =
      library.function<std::size_t(void*, std::size_t, const void*, std::size_t, int)>(
          "ZSTD_compress");
  auto* const decompress =
      library.function<std::size_t(void*, std::size_t, const void*, std::size_t)>(
          "ZSTD_decompress");
  return {"zstd",
          [=](const void* from, std::size_t bytes, int, void* to, std::size_t room) {
            const std::size_t made = compress(to, room, from, bytes, 1);
            return made > room ? 0 : made;  // error codes are larger than any size
          },
          [=](const void* from, std::size_t compressed, void* to, std::size_t bytes) {
            return decompress(to, bytes, from, compressed) == bytes;
          }};
}

/// lz4 (lz4.h) with the default, acceleration 1.
Compressor lz4(const Library& library) {
  auto* const compress =
      library.function<int(const char*, char*, int, int)>("LZ4_compress_default");
  auto* const decompress =
      library.function<int(const char*, char*, int, int)>("LZ4_decompress_safe");
  return {"lz4",
          [=](const void* from, std::size_t bytes, int, void* to, std::size_t room) {
            return static_cast<std::size_t>(
                compress(static_cast<const char*>(from), static_cast<char*>(to),
                         static_cast<int>(bytes), static_cast<int>(room)));
          },
          [=](const void* from, std::size_t compressed, void* to, std::size_t bytes) {
            return decompress(static_cast<const char*>(from), static_cast<char*>(to),
                              static_cast<int>(compressed),
                              static_cast<int>(bytes)) == static_cast<int>(bytes);
          }};
}

/// blosc2 (blosc2.h) with its own codec at level 1, shuffled bytes, and one thread, its default.
Compressor blosc2(const Library& library) {
  library.function<void()>("blosc2_init")();
  using Size = std::int32_t;
  auto* const compress =
      library.function<int(int, int, Size, const void*, Size, void*, Size)>("blosc2_compress");
  auto* const decompress =
      library.function<int(const void*, Size, void*, Size)>("blosc2_decompress");
  return {"blosc2",
          [=](const void* from, std::size_t bytes, int width, void* to, std::size_t room) {
            constexpr int kLevel = 1, kByteShuffle = 1;
            const int made = compress(kLevel, kByteShuffle, width, from, static_cast<Size>(bytes),
                                      to, static_cast<Size>(room));
            return made < 0 ? 0 : static_cast<std::size_t>(made);
          },
          [=](const void* from, std::size_t compressed, void* to, std::size_t bytes) {
            return decompress(from, static_cast<Size>(compressed), to, static_cast<Size>(bytes)) ==
                   static_cast<int>(bytes);
          }};
}

struct Row {
  const char* name;
  const char* file;
  const char* from;  ///< package that has it
  Compressor (*make)(const Library&);
};

constexpr Row kRows[] = {
    {"zstd", "libzstd.so.1", "Debian's package libzstd1", zstd},
    {"lz4", "liblz4.so.1", "Debian's package liblz4-1", lz4},
    {"blosc2", "libblosc2.so", "PyPI's blosc2 brings one, to be named by LD_LIBRARY_PATH", blosc2}};

}  // namespace

std::vector<Compressor> compressors(std::vector<std::string>& skipped) {
  std::vector<Compressor> made;
  for (const Row& row : kRows) {
    if (const Library library(row.file); library) {
      made.push_back(row.make(library));
    } else {
      skipped.push_back(fmt::format("{}: {} is not found ({})", row.name, row.file, row.from));
    }
  }
  return made;
}

}  // namespace hipress::bench
