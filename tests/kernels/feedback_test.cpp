// Tests error feedback: the residual is exactly the values minus the decoded message.

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/codec/state_store.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

TEST_CASE("the residual is v - decode(encode(v)) with v = x / divisor + residual") {
  for (const char* algorithm : {"onebit", "tbq", "tbq(tau=0.01)"}) {
    for (const std::int64_t elements : {1, 33, 5000, 70001}) {
      const auto codec = make_codec(algorithm);
      std::vector<float> residual(elements, 0.0f);
      for (std::uint32_t step = 0; step < 5; ++step) {
        const std::vector<float> inputs = gaussian(elements, step);
        const std::vector<float> values = reference::values_of(inputs, 4, residual);
        const auto decoded = decode(*codec, encode(*codec, inputs, 4, &residual, {}), elements);
        std::vector<float> expected;
        for (std::size_t i = 0; i < values.size(); ++i) expected.push_back(values[i] - decoded[i]);
        REQUIRE(same_bits(residual, expected));
      }
    }
  }
}

TEST_CASE("with tbq, what is sent over many steps adds up to what went in") {
  // The sum of the inputs is the sum of the decoded values plus the last residual. 200 additions of
  // numbers up to 20 err by at most 20 * 2^-24 each.
  const auto codec = make_codec("tbq(tau=0.1)");
  const std::int64_t elements = 100;
  std::vector<float> residual(elements, 0.0f);
  std::vector<double> sent(elements, 0.0), given(elements, 0.0);
  for (int step = 0; step < 200; ++step) {
    std::vector<float> inputs = gaussian(elements, step);
    for (float& x : inputs) x *= 0.05f;
    const auto decoded = decode(*codec, encode(*codec, inputs, 1, &residual, {}), elements);
    for (std::int64_t i = 0; i < elements; ++i) {
      sent[i] += decoded[i];
      given[i] += inputs[i];
    }
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    CHECK(std::fabs(given[i] - sent[i] - residual[i]) < 200 * 20 * 0x1p-24);
  }
}

TEST_CASE("finite gradients leave finite residuals even where v would overflow") {
  // x + e = 2 FLT_MAX is clamped to FLT_MAX, so that later steps stay finite.
  for (const char* algorithm : {"onebit", "tbq"}) {
    const auto codec = make_codec(algorithm);
    std::vector<float> residual(100, 0.0f);
    std::vector<float> inputs(100, FLT_MAX);
    inputs[7] = -FLT_MAX;
    inputs[8] = 1;
    for (int step = 0; step < 4; ++step) {
      const auto decoded = decode(*codec, encode(*codec, inputs, 1, &residual, {}), 100);
      for (const float e : residual) CHECK(std::isfinite(e));
      for (const float d : decoded) CHECK(std::isfinite(d));
    }
  }
}

TEST_CASE("a residual survives a change of partitions") {
  // tbq encodes elements independently, so two partitions must give the values of one.
  const auto codec = make_codec("tbq");
  const std::int64_t elements = 1000, cut = 320;
  StateStore whole_store, cut_store;
  for (std::uint32_t step = 0; step < 4; ++step) {
    const std::vector<float> inputs = gaussian(elements, step);
    struct alignas(16) Message {
      std::byte bytes[512];
    };
    const auto encode_slice = [&](StateStore& store, std::int64_t first, std::int64_t count) {
      Message message;
      EncodeItem item;
      item.values = inputs.data() + first;
      item.elements = count;
      item.state = store.slice("fc", 0, elements, 1, first);
      item.message = message.bytes;
      codec->encode({&item, 1});
    };
    encode_slice(whole_store, 0, elements);
    if (step % 2 == 0) {
      encode_slice(cut_store, 0, cut);
      encode_slice(cut_store, cut, elements - cut);
    } else {
      encode_slice(cut_store, 0, elements);
    }
    const float* whole = whole_store.get("fc", 0, elements, 1);
    const float* parts = cut_store.get("fc", 0, elements, 1);
    CHECK(same_bits({whole, whole + elements}, {parts, parts + elements}));
  }
}

TEST_CASE("a residual left half done gives the messages and residuals of one kept up to date") {
  for (const Isa isa : available_isas()) {
    for (const char* algorithm : {"onebit", "tbq"}) {
      const std::int64_t elements = 40001, cut = 1056;
      const auto codec = make_codec_for(algorithm, isa);
      StateStore store, plain_store;
      std::vector<std::byte> message(16384), plain_message(16384);
      INFO(to_string(isa) << ", " << algorithm);
      for (std::uint32_t step = 0; step < 6; ++step) {
        const std::vector<float> inputs = gaussian(elements, step);
        // Two slices in steps 0 to 2, then one: the cut changes while residuals are half computed.
        const std::vector<std::int64_t> bounds = step < 3
                                                     ? std::vector<std::int64_t>{0, cut, elements}
                                                     : std::vector<std::int64_t>{0, elements};
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
          const std::int64_t count = bounds[i + 1] - bounds[i];
          EncodeItem item;
          item.values = inputs.data() + bounds[i];
          item.elements = count;
          item.divisor = 3;
          item.state = store.slice_of(*codec, "fc", 0, elements, bounds[i], count);
          item.message = message.data();
          codec->encode({&item, 1});
          CHECK(item.state.deferred->owed);
          item.state = plain_store.slice("fc", 0, elements, 1, bounds[i]);
          item.message = plain_message.data();
          codec->encode({&item, 1});
          REQUIRE(message == plain_message);
        }
      }
      const float* settled = store.get("fc", 0, elements, 1);
      const float* plain = plain_store.get("fc", 0, elements, 1);
      CHECK(same_bits({settled, settled + elements}, {plain, plain + elements}));
    }
  }
}

TEST_CASE("a NaN leaves a residual that is half done as it was, but for one rounding of v") {
  // When the NaN is found, the state already holds v = x + e, rounded (input x, residual e).
  // Without x it is e up to two roundings, of v and of the difference: |error| <= 2^-24 (|v| + |e|)
  // (1 + 2^-23).
  for (const char* algorithm : {"onebit", "tbq"}) {
    const std::int64_t elements = 5000;
    const auto codec = make_codec(algorithm);
    std::vector<float> state = gaussian(elements, 1);
    const std::vector<float> before = state;
    Deferred deferred;
    std::vector<float> inputs = gaussian(elements, 2);
    inputs[4321] = std::numeric_limits<float>::quiet_NaN();
    std::vector<std::byte> message(4096);
    EncodeItem item;
    item.values = inputs.data();
    item.elements = elements;
    item.state = {state.data(), elements, &deferred};
    item.message = message.data();
    codec->encode({&item, 1});
    CHECK_FALSE(deferred.owed);
    for (std::int64_t i = 0; i < elements; ++i) {
      if (i == 4321) {
        CHECK(state[i] == before[i]);
        continue;
      }
      const double v = double(inputs[i]) + before[i];
      const double bound = 0x1p-24 * (std::fabs(v) + std::fabs(before[i])) * 1.001;
      REQUIRE(std::fabs(double(state[i]) - before[i]) <= bound);
    }
  }
}

TEST_CASE("algorithms without error feedback keep no state") {
  for (const char* algorithm : {"terngrad", "fp16", "bf16"}) {
    CHECK(make_codec(algorithm)->traits().state_arrays == 0);
    CHECK_FALSE(make_codec(algorithm)->traits().error_feedback);
  }
  for (const char* algorithm : {"onebit", "tbq"}) {
    CHECK(make_codec(algorithm)->traits().state_arrays == 1);
    CHECK(make_codec(algorithm)->traits().error_feedback);
  }
}

}  // namespace
}  // namespace hipress::kernels
