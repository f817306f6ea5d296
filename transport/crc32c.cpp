#include "transport/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "transport/endpoint.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

// A crc is a polynomial over GF(2) modulo Castagnoli's. It is kept bit-reversed: the lowest bit is
// the highest power. Feeding a byte multiplies by x^8; feeding n zero bytes is therefore a linear
// map, the *shift* by n bytes. Inside this file crcs are "raw": without the inversions at both
// ends.

namespace hipress::transport {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bit-reversed 0x1EDC6F41

using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t feed_zero_bits(std::uint32_t crc, int bits) {
  for (int i = 0; i < bits; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
  return crc;
}

/// Tables: entry [k][b] is the crc of byte b followed by k zero bytes, starting with a zero crc.
constexpr std::array<Table, 8> kByteTables = [] {
  std::array<Table, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) tables[0][b] = feed_zero_bits(b, 8);
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::uint32_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}();

std::uint64_t load8(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

std::uint32_t feed_portable(std::uint32_t crc, const std::byte* at, std::size_t bytes) {
  for (; bytes >= 8; at += 8, bytes -= 8) {
    const std::uint64_t word = load8(at) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kByteTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; bytes > 0; ++at, --bytes) {
    crc = (crc >> 8) ^ kByteTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)

/// The shift by a fixed number of bytes, as one table per byte of the crc.
class Shift {
 public:
  constexpr explicit Shift(std::size_t bytes) {
    // Columns of the map for one zero byte. Squaring doubles the number of bytes, up to `bytes`,
    // which is a power of two.
    std::array<std::uint32_t, 32> map{};
    for (int bit = 0; bit < 32; ++bit) map[bit] = feed_zero_bits(1u << bit, 8);
    for (; bytes > 1; bytes /= 2) {
      std::array<std::uint32_t, 32> squared{};
      for (int bit = 0; bit < 32; ++bit) squared[bit] = apply(map, map[bit]);
      map = squared;
    }
    for (int k = 0; k < 4; ++k) {
      for (std::uint32_t b = 0; b < 256; ++b) tables_[k][b] = apply(map, b << (8 * k));
    }
  }
  constexpr std::uint32_t operator()(std::uint32_t crc) const {
    return tables_[0][crc & 0xFF] ^ tables_[1][(crc >> 8) & 0xFF] ^ tables_[2][(crc >> 16) & 0xFF] ^
           tables_[3][crc >> 24];
  }

 private:
  static constexpr std::uint32_t apply(const std::array<std::uint32_t, 32>& map, std::uint32_t to) {
    std::uint32_t sum = 0;
    for (int bit = 0; bit < 32; ++bit) sum ^= ((to >> bit) & 1) != 0 ? map[bit] : 0;
    return sum;
  }
  std::array<Table, 4> tables_{};
};

/// The crc instruction has a latency of three cycles and a throughput of one per cycle. Three
/// neighbouring blocks are therefore fed side by side, and shifts join their crcs. Long blocks need
/// fewer shifts; short messages have no room for them. Hence there are two sizes.
template <std::size_t kBlock>
__attribute__((target("sse4.2"))) std::uint32_t feed_triples(std::uint32_t crc,
                                                             const std::byte*& at,
                                                             std::size_t& bytes) {
  static constexpr Shift kShift(kBlock);
  for (; bytes >= 3 * kBlock; at += 3 * kBlock, bytes -= 3 * kBlock) {
    std::uint64_t first = crc, second = 0, third = 0;
    for (std::size_t i = 0; i < kBlock; i += 8) {
      first = _mm_crc32_u64(first, load8(at + i));
      second = _mm_crc32_u64(second, load8(at + kBlock + i));
      third = _mm_crc32_u64(third, load8(at + 2 * kBlock + i));
    }
    const std::uint32_t joined =
        kShift(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = kShift(joined) ^ static_cast<std::uint32_t>(third);
  }
  return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t feed_sse42(std::uint32_t crc, const std::byte* at,
                                                           std::size_t bytes) {
  crc = feed_triples<4096>(crc, at, bytes);
  crc = feed_triples<256>(crc, at, bytes);
  std::uint64_t wide = crc;
  for (; bytes >= 8; at += 8, bytes -= 8) wide = _mm_crc32_u64(wide, load8(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; bytes > 0; ++at, --bytes) crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(*at));
  return crc;
}

#endif

using Feed = std::uint32_t (*)(std::uint32_t crc, const std::byte* at, std::size_t bytes);

Feed best_feed() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return feed_sse42;
#endif
  return feed_portable;
}

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t seed) {
  return ~feed_portable(~seed, data.data(), data.size());
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed) {
  static const Feed feed = best_feed();
  return ~feed(~seed, data.data(), data.size());
}

}  // namespace hipress::transport
