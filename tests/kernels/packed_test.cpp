// Tests packed messages of sparsifiers: they have the same entries, and rounding errors are kept.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;
using Catch::Contains;

std::string text(const char* name, double rho, int packing) {
  return std::string(name) + "(rho=" + std::to_string(rho) + ",packing=" + std::to_string(packing) +
         ")";
}

TEST_CASE("packed indices decode to the bits of plain messages", "[slow]") {
  for (const char* name : {"dgc", "graddrop"}) {
    for (const double rho : {1.0, 0.3, 0.01, 0.0001}) {
      for (const std::int64_t elements : kLengths) {
        for (const Isa isa : available_isas()) {
          INFO(to_string(isa) << ": " << name << ", rho " << rho << ", " << elements);
          const auto plain = make_codec_for(text(name, rho, 0), isa);
          const auto packed = make_codec_for(text(name, rho, 1), isa);
          const std::vector<float> inputs = gaussian(elements, 7);
          const auto message = encode(*packed, inputs, 3, nullptr, {});
          REQUIRE(static_cast<std::int64_t>(message.size()) == packed->encoded_bytes(elements));
          REQUIRE(same_bits(decode(*packed, message, elements),
                            decode(*plain, encode(*plain, inputs, 3, nullptr, {}), elements)));
        }
      }
    }
  }
}

TEST_CASE("an index of 1 % takes 8.6 bits, and lengths never fall with more elements") {
  // Elias-Fano code with l = 6: an index takes 6 low bits, a set bit in the upper part, and on
  // average 100/64 zeros there for the gap. Rounding adds a word or two.
  const std::int64_t elements = 1'000'000, entries = 10'000;
  const std::int64_t index_bits = entries * 7 + elements / 64;
  CHECK(make_codec("dgc(packing=1)")->encoded_bytes(elements) ==
        Approx(16 + index_bits / 8 + 4 * entries).margin(24));
  CHECK(make_codec("dgc(packing=2)")->encoded_bytes(elements) ==
        Approx(16 + index_bits / 8 + 2 * entries).margin(24));
  for (const char* algorithm :
       {"dgc(packing=1)", "graddrop(rho=0.2,packing=2)", "dgc(rho=1,packing=1)"}) {
    const auto codec = make_codec(algorithm);
    CHECK(codec->encoded_bytes(0) == 0);
    for (std::int64_t n = 1, before = 0; n < 20'000; ++n) {
      const std::int64_t bytes = codec->encoded_bytes(n);
      REQUIRE(bytes >= before);
      REQUIRE(bytes % 4 == 0);
      before = bytes;
    }
  }
}

/// The initial states of a slice: zeros.
std::vector<float> states(const Codec& codec, std::int64_t elements) {
  return std::vector<float>(static_cast<std::size_t>(codec.traits().state_arrays * elements));
}

TEST_CASE("what rounding to fp16 takes from an entry waits for the next message") {
  const std::int64_t elements = 5000;
  const std::vector<float> inputs = gaussian(elements, 11);
  const auto plain = make_codec("graddrop(rho=0.05)");
  const auto packed = make_codec("graddrop(rho=0.05,packing=2)");
  std::vector<float> of_plain = states(*plain, elements), of_packed = states(*packed, elements);
  const auto exact = decode(*plain, encode(*plain, inputs, 1, &of_plain, {}), elements);
  const auto rounded = decode(*packed, encode(*packed, inputs, 1, &of_packed, {}), elements);
  int differ = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(std::abs(rounded[i] - exact[i]) <= std::abs(exact[i]) * 0x1p-11f);
    // The difference of fp32 numbers that are so close is exact (Sterbenz's lemma).
    CHECK(of_packed[i] - of_plain[i] == exact[i] - rounded[i]);
    differ += rounded[i] != exact[i];
  }
  CHECK(differ > 100);
  // DGC keeps unsent values in its second array.
  const auto dgc = make_codec("dgc(rho=0.05,packing=2)");
  std::vector<float> of_dgc = states(*dgc, elements);
  const auto sent = decode(*dgc, encode(*dgc, inputs, 1, &of_dgc, {}), elements);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CHECK(sent[i] + of_dgc[static_cast<std::size_t>(elements) + i] == inputs[i]);
  }
}

TEST_CASE("entries beyond the range of fp16 are sent as its largest number, and the rest waits") {
  const auto codec = make_codec("graddrop(rho=1,packing=2)");
  std::vector<float> waiting = states(*codec, 3);
  const auto sent =
      decode(*codec, encode(*codec, std::vector<float>{1e6f, -1e30f, 1.0f}, 1, &waiting, {}), 3);
  CHECK(sent == std::vector<float>{65504, -65504, 1});
  CHECK(waiting == std::vector<float>{1e6f - 65504, -1e30f + 65504, 0});
}

TEST_CASE("a slice that is not finite stays so when it is packed") {
  for (const char* algorithm : {"dgc(packing=1)", "graddrop(packing=2)"}) {
    std::vector<float> inputs = gaussian(300, 2);
    inputs[17] = std::numeric_limits<float>::infinity();
    const auto codec = make_codec(algorithm);
    for (const float value : decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 300)) {
      CHECK(std::isnan(value));
    }
  }
}

TEST_CASE("damaged packed messages are refused or decode to something, and never reach outside") {
  std::mt19937 generator(3);
  for (const int packing : {1, 2}) {
    const auto codec = make_codec(text("dgc", 0.1, packing));
    const std::int64_t elements = 700;
    const auto right = encode(*codec, gaussian(elements, 5), 1, nullptr, {});
    int refused = 0;
    for (int time = 0; time < 3000; ++time) {
      std::vector<std::byte> damaged = right;
      for (int bit = 0; bit < 1 + time % 4; ++bit) {
        damaged[generator() % damaged.size()] ^= std::byte(1u << (generator() % 8));
      }
      try {
        const std::vector<float> values = decode(*codec, damaged, elements);
        REQUIRE(values.size() == 700);
      } catch (const std::runtime_error& error) {
        CHECK_THAT(error.what(), Contains("damaged message"));
        ++refused;
      }
    }
    CHECK(refused > 300);
    std::vector<std::byte> shorter(right.begin(), right.end() - 4);
    CHECK_THROWS_WITH(decode(*codec, shorter, elements), Contains("expected"));
    const auto plain = make_codec(text("dgc", 0.1, 0));
    CHECK_THROWS_AS(decode(*codec, encode(*plain, gaussian(elements, 5), 1, nullptr, {}), elements),
                    std::runtime_error);
  }
}

TEST_CASE("packing is 0, 1 or 2, and of sparsifiers alone") {
  CHECK_THROWS_WITH(make_codec("dgc(packing=3)"), Contains("out of range"));
  CHECK_THROWS_WITH(make_codec("onebit(packing=1)"), Contains("no parameter 'packing'"));
}

}  // namespace
}  // namespace hipress::kernels
