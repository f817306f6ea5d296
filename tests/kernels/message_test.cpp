// Tests that truncated and damaged messages give an error or some values, never a crash or a write
// outside the slice.

#include <catch2/catch.hpp>
#include <random>

#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

TEST_CASE("a message of the wrong length is refused by the name of its algorithm") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    const auto codec = make_codec(row.name);
    const auto message = encode(*codec, gaussian(100, 1), 1, nullptr, {});
    for (std::size_t length = 0; length < message.size(); ++length) {
      const std::vector<std::byte> cut(message.begin(), message.begin() + length);
      REQUIRE_THROWS_AS(decode(*codec, cut, 100), std::runtime_error);
      REQUIRE_THROWS_WITH(decode(*codec, cut, 100),
                          Catch::StartsWith(std::string(row.name)) && Catch::Contains("expected"));
    }
    std::vector<std::byte> longer = message;
    longer.resize(message.size() + 4);
    CHECK_THROWS_AS(decode(*codec, longer, 100), std::runtime_error);
  }
}

TEST_CASE("a header that does not fit the slice is refused") {
  struct Damage {
    const char* what;
    int byte;
  };
  for (const char* algorithm : {"onebit", "tbq", "terngrad"}) {
    const auto codec = make_codec(algorithm);
    const auto message = encode(*codec, gaussian(100, 1), 1, nullptr, {});
    for (const Damage damage : {Damage{"elements", 0}, Damage{"algorithm", 4}, Damage{"bits", 6},
                                Damage{"non-finite", 7}}) {
      INFO(algorithm << ", " << damage.what);
      auto damaged = message;
      damaged[damage.byte] ^= std::byte(0x42);
      CHECK_THROWS_WITH(decode(*codec, damaged, 100), Catch::Contains("damaged message"));
    }
    // The first number after the header becomes NaN, which no encoder writes.
    if (std::string(algorithm) == "tbq") continue;  // its messages have no numbers
    auto damaged = message;
    for (int byte = 8; byte < 12; ++byte) damaged[byte] = std::byte(0xff);
    CHECK_THROWS_WITH(decode(*codec, damaged, 100), Catch::Contains("damaged message"));
  }
}

TEST_CASE("another algorithm's message is refused") {
  // Here, messages of tbq and terngrad have the same length.
  const auto tbq = make_codec("tbq");
  const auto terngrad = make_codec("terngrad");
  const auto message = encode(*tbq, gaussian(100, 1), 1, nullptr, {});
  CHECK_THROWS_AS(decode(*terngrad, message, 100), std::runtime_error);
}

TEST_CASE("nothing is written before every message of an item has been checked") {
  const auto codec = make_codec("onebit");
  const auto good = encode(*codec, gaussian(100, 1), 1, nullptr, {});
  auto bad = good;
  bad[4] ^= std::byte(9);
  std::vector<float> values(100, 7.0f);
  const std::byte* messages[] = {good.data(), bad.data()};
  const std::int64_t lengths[] = {static_cast<std::int64_t>(good.size()),
                                  static_cast<std::int64_t>(bad.size())};
  DecodeItem item;
  item.messages = messages;
  item.message_bytes = lengths;
  item.elements = 100;
  item.values = values.data();
  item.mode = DecodeMode::kAdd;
  CHECK_THROWS_AS(codec->decode({&item, 1}), std::runtime_error);
  CHECK(values == std::vector<float>(100, 7.0f));
}

TEST_CASE("overwriting takes exactly one message, and every message has a length") {
  const auto codec = make_codec("fp16");
  const auto message = encode(*codec, gaussian(10, 1), 1, nullptr, {});
  std::vector<float> values(10);
  const std::byte* messages[] = {message.data(), message.data()};
  const std::int64_t lengths[] = {20, 20};
  DecodeItem item;
  item.elements = 10;
  item.values = values.data();
  item.messages = messages;
  item.message_bytes = lengths;
  CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
  item.messages = {};
  item.message_bytes = {};
  CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
  item.messages = messages;
  item.mode = DecodeMode::kAdd;
  CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
}

TEST_CASE("random damage never writes outside the slice, and a wrong length is always refused") {
  // testing::decode() guards both sides of the slice; the address sanitizer guards the message.
  std::mt19937 generator(1);
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    for (const Isa isa : available_isas()) {
      const auto codec = make_codec_for(row.name, isa);
      for (int trial = 0; trial < 300; ++trial) {
        const std::int64_t elements = 1 + generator() % 200;
        auto message = encode(*codec, gaussian(elements, trial), 1, nullptr, {});
        const std::size_t length = message.size();
        for (int flips = 1 + generator() % 4; flips > 0; --flips) {
          message[generator() % message.size()] ^= std::byte(1 << generator() % 8);
        }
        if (generator() % 3 == 0) message.resize(generator() % (message.size() + 8));
        bool refused = false;
        try {
          decode(*codec, message, elements);
        } catch (const std::runtime_error&) {
          refused = true;
        }
        CHECK((refused || message.size() == length));
      }
    }
  }
}

TEST_CASE("an empty slice has an empty message") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;  // no encode(); see lowrank_test.cpp
    const auto codec = make_codec(row.name);
    CHECK(encode(*codec, {}, 1, nullptr, {}).empty());
    CHECK(decode(*codec, {}, 0).empty());
  }
}

TEST_CASE("a slice that cannot be is refused") {
  const auto codec = make_codec("onebit");
  EncodeItem item;
  item.elements = -1;
  CHECK_THROWS_AS(codec->encode({&item, 1}), std::invalid_argument);
  item.elements = 5;
  CHECK_THROWS_AS(codec->encode({&item, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace hipress::kernels
