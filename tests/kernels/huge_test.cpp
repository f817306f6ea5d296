// Tests slices of more than 2^32 elements: a gradient of 16 GiB that takes no memory.

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {
namespace {

constexpr std::int64_t kElements = (std::int64_t{1} << 32) + 77;

/// A mapping of zeros that all share one page, except for the last element, which is -1.
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
    std::uint32_t last_code;  ///< code of the last element, -1; `first_code` is that of 0
    std::uint32_t first_code;
  };
  // onebit: code 1 is negative. tbq: code 2 is at most -0.5. terngrad: code 0 is the minimum, code
  // 1 the maximum; at the ends of the range, no draw changes a code.
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
    // Elements below and above 2^32, which a 32-bit index would confuse.
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
  REQUIRE(codec->encoded_bytes(kMax) == 16 + 2 * 32);  // ceil(kMax * 1e-9) = 5, rounded up to 8
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
