// The CUDA back end gives the bits of the plain CPU path. Needs a GPU; without one it says so and
// passes.

#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/kernels/device_memory.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

/// cudaGetDeviceCount leaves its argument untouched when it fails.
bool has_gpu() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  if (!found) WARN("skipped: no GPU on this machine");
  return found;
}

TEST_CASE("CUDA codecs can be made without a GPU") {
  for (const AlgorithmRow& row : algorithms()) {
    const auto codec = make_codec(row.name, Device::kCuda);
    CHECK(codec->encoded_bytes(33) == make_codec(row.name)->encoded_bytes(33));
  }
}

/// Everything that a codec does to a slice of this type and length, on the GPU and on the CPU.
void require_same(const Codec& cuda, const Codec& plain, ValueType type, std::int64_t elements,
                  int offset) {
  const DrawKey key{.seed = 5, .step = 6, .node = 7, .first_element = (std::int64_t{1} << 32) - 40};
  const Stored inputs = stored(type, gaussian(elements, 3));
  for (const float divisor : {1.0f, 3.0f}) {
    REQUIRE(encode_on_gpu(cuda, inputs, divisor, nullptr, key, offset) ==
            encode(plain, inputs, divisor, nullptr, key));
  }
  if (plain.traits().error_feedback) {
    std::vector<float> on_gpu = gaussian(elements, 9), on_cpu = on_gpu;
    REQUIRE(encode_on_gpu(cuda, inputs, 1, &on_gpu, key, offset) ==
            encode(plain, inputs, 1, &on_cpu, key));
    REQUIRE(same_bits(on_gpu, on_cpu));
  }
  // More messages than a launch takes, so that a sum of halves must wait between launches.
  std::vector<std::vector<std::byte>> messages;
  for (std::uint32_t peer = 0; peer < 19; ++peer) {
    messages.push_back(encode(plain, gaussian(elements, peer), 1, nullptr, {.node = peer}));
  }
  REQUIRE(decode_on_gpu(cuda, {messages[0]}, inputs, DecodeMode::kOverwrite, 1, 1, offset) ==
          decode(plain, messages[0], elements, type));
  for (const std::size_t peers : {0, 1, 8, 9, 19}) {
    const std::vector<std::vector<std::byte>> some(messages.begin(), messages.begin() + peers);
    REQUIRE(decode_on_gpu(cuda, some, inputs, DecodeMode::kAdd, 3, 7, offset) ==
            decode_add(plain, some, inputs, 3, 7));
  }
}

constexpr ValueType kTypes[] = {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16};

TEST_CASE("messages, residuals and decoded values from the GPU are the CPU's") {
  if (!has_gpu()) return;
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  // The paths are programs compiled at run time.
  for (const char* algorithm :
       {"onebit", "tbq", "terngrad", "terngrad(b=1)", "terngrad(b=5)", "fp16", "bf16",
        HIPRESS_SOURCE_DIR "/kernels/algorithms/OnebitEncode.pse",
        HIPRESS_SOURCE_DIR "/kernels/algorithms/TerngradEncode.pse(b=5)",
        HIPRESS_SOURCE_DIR "/tests/kernels/data/Spread.pse",
        HIPRESS_SOURCE_DIR "/tests/kernels/data/Spread.pse(b=7)"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    for (const ValueType type : kTypes) {
      for (const std::int64_t elements : kLengths) {
        INFO(algorithm << ", " << to_string(type) << ", " << elements);
        require_same(*cuda, *plain, type, elements, static_cast<int>(elements % 2));
      }
    }
  }
}

TEST_CASE("slices of all types share a batch on the GPU") {
  if (!has_gpu()) return;
  for (const char* algorithm : {"onebit", "terngrad", "bf16"}) {
    INFO(algorithm);
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    const std::int64_t elements = 3001;
    std::vector<Stored> inputs;
    std::vector<DeviceGradient> values;
    std::vector<DeviceArray<std::byte>> messages;
    for (int i = 0; i < 9; ++i) {
      inputs.push_back(stored(kTypes[i % 3], gaussian(elements, i)));
      values.emplace_back(inputs.back(), 0);
      messages.emplace_back(std::vector<std::byte>(plain->encoded_bytes(elements)));
    }
    std::vector<EncodeItem> items(9);
    for (int i = 0; i < 9; ++i) {
      items[i].values = values[i].data();
      items[i].type = inputs[i].type;
      items[i].elements = elements;
      items[i].message = messages[i].data();
    }
    cuda->encode(items);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < 9; ++i) {
      REQUIRE(messages[i].on_host() == encode(*plain, inputs[i], 1, nullptr, {}));
    }
  }
}

TEST_CASE("special inputs give the CPU's bits on the GPU") {
  if (!has_gpu()) return;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* algorithm : {"onebit", "tbq", "terngrad", "fp16", "bf16"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    for (const float special :
         {0.0f, -0.0f, 0.3f, FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, kNan, -INFINITY}) {
      std::vector<float> values(40001, special);
      for (std::size_t i = 0; i < values.size(); i += 2) values[i] = -values[i] * 0.5f;
      for (const ValueType type : kTypes) {
        INFO(algorithm << ", " << to_string(type) << ", " << special);
        const Stored inputs = stored(type, values);
        std::vector<float> on_gpu = gaussian(40001, 9), on_cpu = on_gpu;
        const auto message = encode(*plain, inputs, 1, nullptr, {});
        REQUIRE(encode_on_gpu(*cuda, inputs, 1, nullptr, {}) == message);
        REQUIRE(encode_on_gpu(*cuda, inputs, 1, &on_gpu, {}) ==
                encode(*plain, inputs, 1, &on_cpu, {}));
        REQUIRE(same_bits(on_gpu, on_cpu));
        REQUIRE(decode_on_gpu(*cuda, {message}, inputs, DecodeMode::kOverwrite, 1, 1) ==
                decode(*plain, message, 40001, type));
      }
    }
  }
}

TEST_CASE("a damaged message makes the slice NaN on the GPU") {
  if (!has_gpu()) return;
  const auto cuda = make_codec("onebit", Device::kCuda);
  auto message = encode(*make_codec("onebit"), gaussian(100, 1), 1, nullptr, {});
  const auto is_nan = [](float v) { return std::isnan(v); };
  const auto decoded = [&] {
    const Stored x = stored(ValueType::kFloat32, std::vector<float>(100));
    return loaded(decode_on_gpu(*cuda, {message}, x, DecodeMode::kOverwrite, 1, 1));
  };
  message[12] = std::byte(9);
  auto values = decoded();
  CHECK(std::all_of(values.begin(), values.end(), is_nan));
  message.resize(message.size() - 4);
  values = decoded();
  CHECK(std::all_of(values.begin(), values.end(), is_nan));
}

}  // namespace
}  // namespace hipress::kernels
