#include "transport/crc32c.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <string_view>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::transport {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// CRC32C by its definition, one bit at a time.
std::uint32_t crc32c_by_definition(std::span<const std::byte> data) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte b : data) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::vector<std::byte> noise(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xFF);
  return bytes;
}

}  // namespace

TEST_CASE("crc32c gives the published check values") {
  // These are the check value of the CRC catalogue, and four values of RFC 3720, B.4.
  const std::vector<std::byte> zeros(32, std::byte{0}), ones(32, std::byte{0xFF});
  std::vector<std::byte> rising(32), falling(32);
  for (std::size_t i = 0; i < 32; ++i) {
    rising[i] = static_cast<std::byte>(i);
    falling[i] = static_cast<std::byte>(31 - i);
  }
  for (const auto crc : {crc32c, crc32c_portable}) {
    CHECK(crc(bytes_of("123456789"), 0) == 0xE3069283);
    CHECK(crc(zeros, 0) == 0x8A9136AA);
    CHECK(crc(ones, 0) == 0x62A8AB43);
    CHECK(crc(rising, 0) == 0x46DD794E);
    CHECK(crc(falling, 0) == 0x113FDB5C);
    CHECK(crc({}, 0) == 0);
  }
}

TEST_CASE("crc32c is the same for every length, alignment and way to compute it") {
  // Lengths lie around block sizes: 8 (a word), 3 × 256 and 3 × 4096 (three blocks side by side).
  const std::vector<std::byte> data = noise(3 * 4096 * 2 + 1000);
  for (const std::size_t length :
       {0, 1, 7, 8, 9, 767, 768, 769, 1535, 1536, 12287, 12288, 12289, 24577, 25000}) {
    for (const std::size_t offset : {0, 1, 3}) {
      const auto part = std::span(data).subspan(offset, length);
      const std::uint32_t expected = crc32c_by_definition(part);
      CAPTURE(length, offset);
      CHECK(crc32c(part) == expected);
      CHECK(crc32c_portable(part) == expected);
    }
  }
}

TEST_CASE("crc32c goes on where a seed ends") {
  const std::vector<std::byte> data = noise(20000);
  const std::uint32_t whole = crc32c(data);
  for (const std::size_t cut : {0, 1, 4097, 12288, 20000}) {
    const auto first = std::span(data).first(cut), rest = std::span(data).subspan(cut);
    CHECK(crc32c(rest, crc32c(first)) == whole);
    CHECK(crc32c_portable(rest, crc32c_portable(first)) == whole);
  }
}

TEST_CASE("crc32c changes with every single bit") {
  std::vector<std::byte> data = noise(1000);
  const std::uint32_t before = crc32c(data);
  for (std::size_t bit = 0; bit < 8000; ++bit) {
    data[bit / 8] ^= std::byte{1} << (bit % 8);
    CHECK(crc32c(data) != before);
    data[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace hipress::transport
