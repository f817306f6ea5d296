// Tests encode_stage() and decode_stages() of every codec.

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/kernels/reference.hpp"
#include "tests/kernels/staged_cluster.hpp"

namespace hipress::kernels {
namespace {

using Catch::Contains;
using testing::Replica;
using testing::same_bits;

const std::vector<std::int64_t> kShape = {40, 50};

std::vector<float> gradient() {
  std::vector<float> values;
  for (int i = 0; i < 2000; ++i) {
    values.push_back(static_cast<float>(i % 37 - 18) * 0.07f + static_cast<float>(i % 5));
  }
  return values;
}

TEST_CASE("each algorithm takes a gradient through its stages") {
  for (const AlgorithmRow& row : algorithms()) {
    INFO(row.name);
    const auto codec = make_codec(row.name);
    const std::vector<Stage> stages = codec->stages(kShape);
    REQUIRE(stages.size() == static_cast<std::size_t>(codec->traits().stages));
    for (const Stage& stage : stages) CHECK(stage.additive == codec->traits().additive);
    Replica node(*codec, kShape);
    node.values = gradient();
    std::int64_t length = 0;
    StagedSlice slice = node.slice(kShape, {.seed = 1});
    if (codec->traits().varies) slice.message_bytes = &length;
    for (int stage = 0; stage < codec->traits().stages; ++stage) {
      codec->encode_stage(stage, {&slice, 1});
    }
    codec->decode_stages({&slice, 1});
    CHECK(length <= stages[0].bytes);
    CHECK_THROWS_AS(codec->encode_stage(codec->traits().stages, {&slice, 1}),
                    std::invalid_argument);
  }
}

TEST_CASE("one stage is an encode and a decode of the whole, to the bit") {
  for (const AlgorithmRow& row : algorithms()) {
    if (row.additive) continue;
    INFO(row.name);
    const auto codec = make_codec(row.name);
    Replica node(*codec, kShape);
    std::vector<float> states(static_cast<std::size_t>(codec->traits().state_arrays) * 2000);
    CHECK(state_bytes(*codec, kShape) == static_cast<std::int64_t>(4 * states.size()));
    for (std::uint64_t step = 0; step < 3; ++step) {  // residuals are kept between steps
      const DrawKey key = {.seed = 5, .step = step};
      node.values = gradient();
      std::int64_t length = codec->encoded_bytes(2000);
      StagedSlice slice = node.slice(kShape, key);
      slice.message_bytes = &length;
      codec->encode_stage(0, {&slice, 1});

      const std::vector<float> values = gradient();
      std::vector<float> message(static_cast<std::size_t>(codec->encoded_bytes(2000) / 4) + 4);
      std::int64_t bytes = 0;
      EncodeItem item{.values = values.data(), .elements = 2000};
      if (!states.empty()) item.state = {.data = states.data(), .stride = 2000};
      auto* const start = reinterpret_cast<std::byte*>(message.data());
      auto* const place = start + (16 - reinterpret_cast<std::uintptr_t>(start) % 16) % 16;
      item.message = place;
      item.key = key;
      item.message_bytes = &bytes;
      codec->encode({&item, 1});
      CHECK(bytes == length);
      CHECK(std::memcmp(place, node.factors[0].data(), static_cast<std::size_t>(bytes)) == 0);
      if (!states.empty()) CHECK(same_bits(states, node.states[0]));

      codec->decode_stages({&slice, 1});
      std::vector<float> decoded(2000);
      const std::byte* const messages[] = {place};
      const DecodeItem decode{.messages = messages,
                              .message_bytes = {&bytes, 1},
                              .elements = 2000,
                              .values = decoded.data()};
      codec->decode({&decode, 1});
      CHECK(same_bits(decoded, node.values));
    }
  }
}

TEST_CASE("a slice without what a codec of one stage needs is refused") {
  const auto refused = [](const std::string& name, auto change) {
    const auto codec = make_codec(name);
    Replica node(*codec, kShape);
    node.values = gradient();
    StagedSlice slice = node.slice(kShape, {});
    change(slice);
    CHECK_THROWS_WITH(codec->encode_stage(0, {&slice, 1}), Contains("needs one message"));
    CHECK_THROWS_WITH(codec->decode_stages({&slice, 1}), Contains("needs one message"));
  };
  refused("fp16", [](StagedSlice& slice) { slice.factors = {}; });
  refused("onebit", [](StagedSlice& slice) { slice.states = {}; });
  refused("lossless", [](StagedSlice&) {});
}

}  // namespace
}  // namespace hipress::kernels
