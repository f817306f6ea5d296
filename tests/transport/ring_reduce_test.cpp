#include "transport/ring_reduce.hpp"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "tests/transport/ranks.hpp"

namespace hipress::transport::test {
namespace {

using Catch::Matchers::Contains;

std::array<Socket, 2> connection() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

/// Rank 0 of 2. The test plays rank 1; everything that they send fits into the sockets' buffers.
struct Neighbour {
  std::array<Socket, 2> to = connection(), from = connection();
  std::shared_ptr<WireCollective> rank_0 =
      make_ring_reduce(0, 2, std::move(from[0]), std::move(to[0]), 5);

  template <class Number>
  void send(const std::vector<Number>& numbers) {
    const std::size_t bytes = numbers.size() * sizeof(Number);
    REQUIRE(::send(to[1].number(), numbers.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  }
  /// Closes rank 0, and returns all bytes that it has sent.
  std::vector<std::byte> received() {
    rank_0->close();
    std::vector<std::byte> bytes(1 << 16);
    std::size_t held = 0;
    for (ssize_t n = 1; n > 0; held += static_cast<std::size_t>(n)) {
      n = ::recv(from[1].number(), bytes.data() + held, bytes.size() - held, 0);
      REQUIRE(n >= 0);
    }
    bytes.resize(held);
    return bytes;
  }
};

template <class Number>
void append(std::vector<std::byte>& bytes, const std::vector<Number>& numbers) {
  const auto added = std::as_bytes(std::span(numbers));
  bytes.insert(bytes.end(), added.begin(), added.end());
}

/// Requires the stream of rank 0 for 2 · kHalf numbers: their length (8 bytes), half of its own
/// numbers, and half of the sums. 2-byte numbers take half of the bytes of 4-byte numbers.
template <class Number>
void require_stream(const Addition& addition) {
  constexpr std::size_t kHalf = 500;
  std::vector<Number> values(2 * kHalf), first(kHalf), second(kHalf);
  std::iota(values.begin(), values.end(), Number{0});
  first.assign(values.begin(), values.begin() + kHalf);
  second.assign(values.begin() + kHalf, values.end());
  Neighbour neighbour;
  neighbour.send(std::vector<std::uint64_t>{values.size() * sizeof(Number)});
  neighbour.send(std::vector<Number>(kHalf, Number{7}));  // rank 1's second half
  neighbour.send(std::vector<Number>(kHalf, Number{9}));  // sums of the first half
  neighbour.rank_0->all_reduce(std::as_writable_bytes(std::span(values)), addition);

  std::vector<std::byte> expected;
  append(expected, std::vector<std::uint64_t>{2 * kHalf * sizeof(Number)});
  append(expected, first);
  for (Number& value : second) value = static_cast<Number>(value + 7);
  append(expected, second);
  CHECK(expected.size() == 8 + 2 * kHalf * sizeof(Number));
  CHECK(neighbour.received() == expected);
  CHECK(std::vector<Number>(values.begin(), values.begin() + kHalf) ==
        std::vector<Number>(kHalf, Number{9}));
  CHECK(std::vector<Number>(values.begin() + kHalf, values.end()) == second);
}

}  // namespace

TEST_CASE("a ring sends the numbers' own bytes: those of 16 bits take half of the wire") {
  require_stream<float>(kFloatAddition);
  require_stream<std::uint16_t>(kShortAddition);
}

TEST_CASE("a ring whose ranks reduce different lengths says so") {
  Neighbour neighbour;
  neighbour.send(std::vector<std::uint64_t>{40});
  std::vector<float> values(20);
  CHECK_THROWS_WITH(
      neighbour.rank_0->all_reduce(std::as_writable_bytes(std::span(values)), kFloatAddition),
      Contains("rank 0 reduces 80 bytes, the rank before it 40"));
}

}  // namespace hipress::transport::test
