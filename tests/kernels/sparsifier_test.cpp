// Tests that sparsifiers send exactly the largest entries, whatever samples and hints they use.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/codec/state_store.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

struct Entries {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

/// A message's entries, by the documented layout.
Entries entries_of(const std::vector<std::byte>& message) {
  std::uint32_t count = 0;
  std::memcpy(&count, &message[8], 4);
  Entries entries;
  entries.indices.resize(count);
  entries.values.resize(count);
  std::memcpy(entries.indices.data(), &message[16], 4 * count);
  std::memcpy(entries.values.data(), &message[16 + (message.size() - 16) / 2], 4 * count);
  return entries;
}

TEST_CASE("sparsifiers send exactly the largest entries of slices that mislead a sample",
          "[slow]") {
  // 70000 and 200000 elements are sampled first, 3000 are not. The reference sorts all elements.
  for (const std::int64_t elements : {3000, 70000, 200000}) {
    for (const auto& [name, inputs] : hard_slices(elements)) {
      for (const double rho : {0.0001, 0.01, 0.3, 1.0}) {
        const auto expected = reference::graddrop(inputs, 1, {}, rho);
        for (const Isa isa : available_isas()) {
          INFO(to_string(isa) << ": " << name << ", " << elements << ", rho " << rho);
          const auto codec = make_codec_for("graddrop(rho=" + std::to_string(rho) + ")", isa);
          const auto message = encode(*codec, inputs, 1, nullptr, {});
          REQUIRE(message == expected.message);
        }
      }
    }
  }
}

TEST_CASE("what an encode remembers of the last one never changes a message") {
  // Gradients of very different sizes take turns, so that the previous encode's threshold selects
  // no entries, all, or about enough. With 3000 and 40 elements, all entries can be collected.
  for (const auto& [algorithm, elements] :
       std::initializer_list<std::pair<const char*, std::int64_t>>{
           {"dgc", 100000},
           {"graddrop", 100000},
           {"dgc(rho=0.2,momentum=0.9)", 100000},
           {"dgc", 3000},
           {"graddrop(rho=0.3)", 40}}) {
    const auto codec = make_codec(algorithm);
    const auto floats = static_cast<std::size_t>(elements * codec->traits().state_arrays);
    std::vector<float> with(floats), without(floats);
    std::vector<std::byte> message(static_cast<std::size_t>(codec->encoded_bytes(elements)) + 16);
    std::vector<std::byte> plain = message;
    Deferred deferred;
    for (std::uint32_t step = 0; step < 16; ++step) {
      std::vector<float> inputs = gaussian(elements, step);
      const float scales[] = {1, 1, 1, 1, 1e-6f, 1e6f, 1, 0};
      for (float& x : inputs) x *= scales[step % 8];
      for (const bool remembers : {true, false}) {
        EncodeItem item;
        item.values = inputs.data();
        item.elements = elements;
        item.state = {(remembers ? with : without).data(), elements,
                      remembers ? &deferred : nullptr};
        item.message = (remembers ? message : plain).data();
        codec->encode({&item, 1});
      }
      INFO(algorithm << ", step " << step);
      REQUIRE(message == plain);
      REQUIRE(same_bits(with, without));
      REQUIRE_FALSE(deferred.owed);
    }
  }
}

TEST_CASE("graddrop: sent plus residual is the gradient plus the residual before, exactly") {
  const auto codec = make_codec("graddrop(rho=0.05)");
  for (const std::int64_t elements : {1, 19, 1000, 50001}) {
    std::vector<float> residual = gaussian(elements, 1);
    for (std::uint32_t step = 2; step < 6; ++step) {
      const std::vector<float> inputs = gaussian(elements, step);
      const std::vector<float> values = reference::values_of(inputs, 1, residual);
      const auto message = encode(*codec, inputs, 1, &residual, {});
      const std::vector<float> sent = decode(*codec, message, elements);
      for (std::int64_t i = 0; i < elements; ++i) {
        REQUIRE(sent[i] + residual[i] == values[i]);
        REQUIRE((sent[i] == 0 || residual[i] == 0));
      }
      const auto most = static_cast<std::size_t>(std::ceil(0.05 * static_cast<double>(elements)));
      REQUIRE(entries_of(message).indices.size() <= most);
    }
  }
}

TEST_CASE("dgc: with momentum 0, what is sent over many steps adds up to what went in") {
  // Inputs are whole numbers, whose sums up to 2^24 are exact.
  const std::int64_t elements = 3001;
  const auto codec = make_codec("dgc(momentum=0,rho=0.01)");
  std::vector<float> states(2 * elements), sent(elements), given(elements);
  std::mt19937 generator(3);
  for (int step = 0; step < 50; ++step) {
    std::vector<float> inputs;
    for (std::int64_t i = 0; i < elements; ++i) {
      inputs.push_back(static_cast<float>(static_cast<int>(generator() % 2001) - 1000));
      given[i] += inputs.back();
    }
    const auto decoded = decode(*codec, encode(*codec, inputs, 1, &states, {}), elements);
    for (std::int64_t i = 0; i < elements; ++i) sent[i] += decoded[i];
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    REQUIRE(sent[i] + states[elements + i] == given[i]);
  }
}

TEST_CASE("dgc: sent entries clear both accumulators, others keep their momentum") {
  const auto codec = make_codec("dgc(rho=0.25,momentum=0.5)");
  std::vector<float> states(8);
  encode(*codec, {1, -8, 2, 3}, 1, &states, {});
  CHECK(states == std::vector<float>{1, 0, 2, 3, 1, 0, 2, 3});
  const auto message = encode(*codec, {1, 1, 1, 1}, 1, &states, {});
  // Velocities are 1.5, 1, 2, 2.5, and pending values 2.5, 1, 4, 5.5, of which the last is sent.
  CHECK(decode(*codec, message, 4) == std::vector<float>{0, 0, 0, 5.5f});
  CHECK(states == std::vector<float>{1.5f, 1, 2, 0, 2.5f, 1, 4, 0});
}

TEST_CASE("decoding a sparsifier's message over old values leaves none of them") {
  const auto codec = make_codec("graddrop(rho=0.1)");
  const std::vector<float> inputs = gaussian(1000, 2);
  const auto decoded = decode(*codec, encode(*codec, inputs, 1, nullptr, {}), 1000);
  // testing::decode() begins with NaNs: elements that were not sent must have become 0.
  CHECK(std::count(decoded.begin(), decoded.end(), 0.0f) == 900);
}

TEST_CASE("a damaged sparsifier's message is an error, and nothing is written") {
  const auto codec = make_codec("graddrop(rho=0.1)");
  const std::int64_t elements = 100;
  const auto good = encode(*codec, gaussian(elements, 2), 1, nullptr, {});
  const auto refused = [&](std::size_t at, std::uint32_t word) {
    std::vector<std::byte> bad = good;
    std::memcpy(&bad[at], &word, 4);
    CHECK_THROWS_AS(decode(*codec, bad, elements), std::runtime_error);
    CHECK_THROWS_AS(decode_add(*codec, {good, bad}, gaussian(elements, 1), 2, 2),
                    std::runtime_error);
  };
  refused(0, 99);                 // a different number of elements
  refused(4, 0);                  // a different algorithm's tag
  refused(8, 11);                 // more than the 10 possible entries
  refused(8, 0xffffffffu);        // many more
  refused(16, 100);               // an index past the end
  refused(16, 0xffffffffu);       // far past the end
  refused(20, 0);                 // indices that do not ascend
  refused(16 + 48, 0x7f800000u);  // an infinity among the values
  refused(16 + 48, 0x7fc00000u);
}

TEST_CASE("decode-and-add touches the entries that were sent, and divides everything") {
  const auto codec = make_codec("dgc(rho=0.02)");
  const std::int64_t elements = 5000;
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::vector<float>> decoded;
  for (std::uint32_t k = 0; k < 5; ++k) {
    messages.push_back(encode(*codec, gaussian(elements, k), 1, nullptr, {}));
    decoded.push_back(decode(*codec, messages.back(), elements));
  }
  const std::vector<float> x = gaussian(elements, 9);
  for (const auto& [own, sum] : {std::pair(1.0f, 1.0f), std::pair(3.0f, 1.0f),
                                 std::pair(1.0f, 6.0f), std::pair(2.0f, 7.0f)}) {
    std::vector<float> expected = x;
    for (std::int64_t i = 0; i < elements; ++i) {
      expected[i] = expected[i] / own;
      for (const auto& term : decoded) expected[i] = expected[i] + term[i];
      expected[i] = expected[i] / sum;
    }
    CHECK(same_bits(decode_add(*codec, messages, x, own, sum), expected));
  }
}

TEST_CASE("a sparsifier counts its entries as the ceiling of rho times the elements") {
  const auto bytes = [](const char* algorithm, std::int64_t elements) {
    return make_codec(algorithm)->encoded_bytes(elements);
  };
  // 16 bytes of header, then indices and values, each rounded up to a multiple of 4 entries.
  CHECK(bytes("graddrop", 0) == 0);
  CHECK(bytes("graddrop", 1) == 16 + 2 * 16);
  CHECK(bytes("graddrop", 400) == 16 + 2 * 16);
  CHECK(bytes("graddrop", 401) == 16 + 2 * 32);
  CHECK(bytes("graddrop(rho=1)", 5) == 16 + 2 * 32);
}

}  // namespace
}  // namespace hipress::kernels
