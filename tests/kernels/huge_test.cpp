// Slices of more than 2^32 elements: 16 GiB of gradient that takes no memory.

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {
namespace {

constexpr std::int64_t kElements = (std::int64_t{1} << 32) + 77;

/// A mapping of zeros, all of them the same page, but for the last element: -1.
class Zeros {
 public:
  Zeros() {
    data_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, kBytes, MADV_NOHUGEPAGE);
    static_cast<float*>(data_)[kElements - 1] = -1;
    mprotect(data_, kBytes, PROT_READ);
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { munmap(data_, kBytes); }
  const float* data() const { return static_cast<const float*>(data_); }

 private:
  static constexpr std::size_t kBytes = kElements * sizeof(float);
  void* data_;
};

TEST_CASE("slices of more than 2^32 elements are coded to their end", "[long]") {
  const Zeros zeros;
  struct Expected {
    const char* algorithm;
    int bits;
    std::uint32_t last_code;  ///< of -1; that of 0 is given by the other end of the range
    std::uint32_t first_code;
  };
  // onebit: 1 is negative. tbq: 2 is at or below -0.5. terngrad: 0 is the minimum, 1 the maximum,
  // and at the ends of the range no draw changes a code.
  for (const Expected& expected : {Expected{"onebit", 1, 1, 0}, Expected{"tbq", 2, 2, 0},
                                   Expected{"terngrad(b=1)", 1, 0, 1}}) {
    INFO(expected.algorithm);
    const auto codec = make_codec(expected.algorithm);
    const std::int64_t words = (kElements + 31) / 32;
    REQUIRE(codec->encoded_bytes(kElements) == 16 + words * 4 * expected.bits);
    const std::unique_ptr<std::byte, void (*)(std::byte*)> message(
        static_cast<std::byte*>(
            std::aligned_alloc(16, (codec->encoded_bytes(kElements) + 15) / 16 * 16)),
        [](std::byte* memory) { std::free(memory); });
    EncodeItem item;
    item.values = zeros.data();
    item.elements = kElements;
    item.message = message.get();
    codec->encode({&item, 1});
    const auto code = [&](std::int64_t element) {
      std::uint32_t found = 0;
      for (int p = 0; p < expected.bits; ++p) {
        std::uint32_t plane;
        std::memcpy(&plane, message.get() + 16 + (element / 32 * expected.bits + p) * 4, 4);
        found |= (plane >> (element % 32) & 1) << p;
      }
      return found;
    };
    CHECK(code(kElements - 1) == expected.last_code);
    // Before and behind the 2^32 that a 32-bit index would fold together.
    for (const std::int64_t element :
         {std::int64_t{0}, std::int64_t{76}, (std::int64_t{1} << 31) + 5,
          (std::int64_t{1} << 32) - 1, std::int64_t{1} << 32, kElements - 2}) {
      CHECK(code(element) == expected.first_code);
    }
  }
}

TEST_CASE("sparsifiers send the last of 2^32 - 1 elements, and refuse more", "[long]") {
  const Zeros zeros;
  const auto codec = make_codec("graddrop(rho=1e-9)");
  constexpr std::int64_t kMax = (std::int64_t{1} << 32) - 1;
  REQUIRE(codec->encoded_bytes(kMax) == 16 + 2 * 32);  // ceil(4.29) entries, in fours
  alignas(16) std::byte message[80];
  EncodeItem item;
  item.values = zeros.data() + kElements - kMax;
  item.elements = kMax;
  item.message = message;
  codec->encode({&item, 1});
  std::uint32_t count = 0, index = 0;
  float value = 0;
  std::memcpy(&count, message + 8, 4);
  std::memcpy(&index, message + 16, 4);
  std::memcpy(&value, message + 16 + 32, 4);
  CHECK(count == 1);
  CHECK(index == 0xfffffffeu);
  CHECK(value == -1);
  item.values = zeros.data();
  item.elements = kMax + 1;
  CHECK_THROWS_WITH(codec->encode({&item, 1}), Catch::Contains("cut it into partitions"));
}

}  // namespace
}  // namespace hipress::kernels
