// Tests that the CUDA back end gives the bits of the plain CPU path. Without a GPU, they say so and
// pass.

#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/gpu.hpp"
#include "tests/kernels/device_memory.hpp"
#include "tests/kernels/lowrank_device.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/kernels/run_time_programs.hpp"

namespace hipress::kernels {
namespace {

using namespace testing;

/// True if there is a GPU. (A failing cudaGetDeviceCount leaves `count` unchanged.)
bool has_gpu() {
  int count = 0;
  return tests::has_gpu(cudaGetDeviceCount(&count) == cudaSuccess ? count : 0);
}

TEST_CASE("CUDA codecs can be made without a GPU") {
  for (const AlgorithmRow& row : algorithms()) {
    const auto codec = make_codec(row.name, Device::kCuda);
    CHECK(codec->encoded_bytes(33) == make_codec(row.name)->encoded_bytes(33));
  }
}

/// Requires the same results of all operations on the GPU and on the CPU, for one slice.
void require_same(const Codec& cuda, const Codec& plain, ValueType type, std::int64_t elements,
                  int offset) {
  const DrawKey key{.seed = 5, .step = 6, .node = 7, .first_element = (std::int64_t{1} << 32) - 40};
  const Stored inputs = stored(type, gaussian(elements, 3));
  for (const float divisor : {1.0f, 3.0f}) {
    REQUIRE(encode_on_gpu(cuda, inputs, divisor, nullptr, key, offset) ==
            encode(plain, inputs, divisor, nullptr, key));
  }
  if (plain.traits().error_feedback) {
    std::vector<float> on_gpu = gaussian(elements * plain.traits().state_arrays, 9);
    std::vector<float> on_cpu = on_gpu;
    for (const float divisor : {1.0f, 3.0f}) {
      REQUIRE(encode_on_gpu(cuda, inputs, divisor, &on_gpu, key, offset) ==
              encode(plain, inputs, divisor, &on_cpu, key));
      REQUIRE(same_bits(on_gpu, on_cpu));
    }
  }
  // More messages than a launch takes: a sum of a 16-bit slice must be kept between launches.
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

/// Calls require_same() for slices of all types and lengths.
void require_same_for_all(const std::string& algorithm) {
  const auto plain = make_codec_for(algorithm, Isa::kScalar);
  const auto cuda = make_codec(algorithm, Device::kCuda);
  for (const ValueType type : kTypes) {
    for (const std::int64_t elements : kLengths) {
      INFO(algorithm << ", " << to_string(type) << ", " << elements);
      require_same(*cuda, *plain, type, elements, static_cast<int>(elements % 2));
    }
  }
}

TEST_CASE("messages, residuals and decoded values from the GPU are the CPU's") {
  if (!has_gpu()) return;
  for (const char* algorithm :
       {"onebit", "tbq", "terngrad", "terngrad(b=1)", "terngrad(b=5)", "fp16", "bf16"}) {
    require_same_for_all(algorithm);
  }
}

TEST_CASE("quantisers compiled at run time give the CPU's bits on the GPU") {
  if (!has_gpu() || !find_nvrtc()) return;
  for (const std::string& algorithm :
       {shipped_program("OnebitEncode.pse"), shipped_program("TerngradEncode.pse") + "(b=5)",
        users_program(), users_program() + "(b=7)"}) {
    require_same_for_all(algorithm);
  }
}

TEST_CASE("messages, states and decoded values of sparsifiers from the GPU are the CPU's") {
  if (!has_gpu()) return;
  for (const char* algorithm : {"dgc", "dgc(rho=0.3,momentum=0.5)", "graddrop", "graddrop(rho=1)",
                                "dgc(packing=1)", "graddrop(rho=0.2,packing=2)"}) {
    require_same_for_all(algorithm);
  }
}

TEST_CASE("lossless messages and decoded values from the GPU are the CPU's") {
  if (!has_gpu()) return;
  require_same_for_all("lossless");
  // More elements than a chunk of any type has; the fp32 numbers are all exact in bf16.
  constexpr std::int64_t kElements = 140003;
  const auto plain = make_codec("lossless"), cuda = make_codec("lossless", Device::kCuda);
  const Stored narrow = stored(ValueType::kBfloat16, gaussian(kElements, 1));
  const Stored wide = stored(ValueType::kFloat32, loaded(narrow));
  for (const Stored& values : {narrow, wide}) {
    REQUIRE(encode_on_gpu(*cuda, values, 1, nullptr, {}) == encode(*plain, values, 1, nullptr, {}));
  }
}

TEST_CASE("messages, states and decoded values of low rank from the GPU are the CPU's") {
  if (!has_gpu()) return;
  for (const char* algorithm : {"powersgd", "powersgd(rank=33,ef=2)", "acpsgd(rank=8)", "rsketch",
                                "rsketch(rank=2,ef=0)"}) {
    for (const ValueType type : {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16}) {
      INFO(algorithm << ", " << to_string(type));
      testing::StagedPair pair(algorithm, {{509, 1031}, {64, 64, 3, 3}, {1, 50}, {2000, 300}},
                               type);
      for (std::uint32_t step = 0; step < 2; ++step) pair.step(step, 1);
      pair.step(2, 1, std::numeric_limits<float>::quiet_NaN());
      pair.step(3, 0);
      if (type == ValueType::kFloat32) pair.step(4, 1e38f);
    }
  }
}

TEST_CASE("merges on the GPU have the CPU's bits") {
  if (!has_gpu()) return;
  for (const std::int64_t elements : {1, 255, 1024, 1025, 1000003}) require_same_merges(elements);
}

TEST_CASE("sparsifiers compiled at run time give the CPU's bits on the GPU") {
  if (!has_gpu() || !find_nvrtc()) return;
  for (const std::string& algorithm :
       {shipped_program("DgcEncode.pse") + "(rho=0.02)", shipped_program("GraddropEncode.pse")}) {
    INFO(algorithm);
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    require_same(*cuda, *plain, ValueType::kBfloat16, 100001, 0);
  }
}

TEST_CASE("sparsifiers send exactly the largest entries on the GPU, whatever a sample says") {
  if (!has_gpu()) return;
  for (const std::int64_t elements : {3000, 70000, 200000}) {
    for (const auto& [name, inputs] : hard_slices(elements)) {
      for (const char* rho : {"0.0001", "0.01", "0.3", "1"}) {
        INFO(name << ", " << elements << ", rho " << rho);
        const std::string graddrop = std::string("graddrop(rho=") + rho + ")";
        const Stored gradient = stored(ValueType::kFloat32, inputs);
        REQUIRE(encode_on_gpu(*make_codec(graddrop, Device::kCuda), gradient, 1, nullptr, {}) ==
                encode(*make_codec(graddrop), gradient, 1, nullptr, {}));
        const std::string dgc = std::string("dgc(rho=") + rho + ")";
        std::vector<float> on_gpu(static_cast<std::size_t>(2 * elements)), on_cpu = on_gpu;
        for (int step = 0; step < 2; ++step) {
          REQUIRE(encode_on_gpu(*make_codec(dgc, Device::kCuda), gradient, 1, &on_gpu, {}) ==
                  encode(*make_codec(dgc), gradient, 1, &on_cpu, {}));
          REQUIRE(same_bits(on_gpu, on_cpu));
        }
      }
    }
  }
}

TEST_CASE("states of sparsifiers stay the CPU's over many steps on the GPU") {
  if (!has_gpu()) return;
  const std::int64_t elements = 100000;
  for (const char* algorithm : {"dgc", "graddrop", "dgc(rho=0.2,momentum=0)"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    const auto floats = static_cast<std::size_t>(elements * plain->traits().state_arrays);
    std::vector<float> on_gpu(floats), on_cpu(floats);
    for (std::uint32_t step = 0; step < 8; ++step) {
      INFO(algorithm << ", step " << step);
      std::vector<float> inputs = gaussian(elements, step);
      const float scales[] = {1, 1, 1e-6f, 1e6f, 1, 0};
      for (float& x : inputs) x *= scales[step % 6];
      // A slice that is not finite leaves the states unchanged.
      if (step == 4) inputs[99999] = INFINITY;
      const Stored gradient = stored(ValueType::kFloat32, inputs);
      const std::vector<float> before = on_gpu;
      REQUIRE(encode_on_gpu(*cuda, gradient, 4, &on_gpu, {}) ==
              encode(*plain, gradient, 4, &on_cpu, {}));
      REQUIRE(same_bits(on_gpu, on_cpu));
      REQUIRE(same_bits(on_gpu, before) == (step == 4));
    }
  }
}

TEST_CASE("many slices of sparsifiers share launches on the GPU") {
  if (!has_gpu()) return;
  // More slices than a launch takes: of all types, with and without states, one not finite.
  constexpr int kSlices = 67;
  for (const char* algorithm : {"dgc(rho=0.05)", "graddrop"}) {
    INFO(algorithm);
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    const int arrays = plain->traits().state_arrays;
    std::vector<Stored> inputs;
    std::vector<DeviceGradient> values;
    std::vector<DeviceArray<std::byte>> messages;
    std::vector<DeviceArray<float>> states;
    std::vector<EncodeItem> items(kSlices);
    const auto elements_of = [](int i) { return std::int64_t{i} * i * 13 + i % 3; };
    for (int i = 0; i < kSlices; ++i) {
      std::vector<float> numbers = gaussian(elements_of(i), i);
      if (i == 50) numbers[7] = -INFINITY;
      inputs.push_back(stored(kTypes[i % 3], numbers));
      values.emplace_back(inputs.back(), 0);
      messages.emplace_back(std::vector<std::byte>(plain->encoded_bytes(elements_of(i))));
      states.emplace_back(gaussian(elements_of(i) * arrays, 100 + i));
      items[i].values = values[i].data();
      items[i].type = inputs[i].type;
      items[i].elements = elements_of(i);
      items[i].message = messages[i].data();
      if (i % 4 != 0) items[i].state = {states[i].data(), elements_of(i)};
    }
    cuda->encode(items);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < kSlices; ++i) {
      INFO(i);
      std::vector<float> state = gaussian(elements_of(i) * arrays, 100 + i);
      REQUIRE(messages[i].on_host() ==
              encode(*plain, inputs[i], 1, i % 4 != 0 ? &state : nullptr, {}));
      REQUIRE(same_bits(states[i].on_host(), state));
    }
  }
}

TEST_CASE("a sparsifier's damaged message makes the slice NaN on the GPU, and nothing else") {
  if (!has_gpu()) return;
  const std::int64_t elements = 20000;
  const auto plain = make_codec("graddrop(rho=0.01)");
  const auto cuda = make_codec("graddrop(rho=0.01)", Device::kCuda);
  const auto good = encode(*plain, gaussian(elements, 2), 1, nullptr, {});
  std::vector<float> unbounded(elements, INFINITY);
  const auto non_finite = encode(*plain, unbounded, 1, nullptr, {});
  const auto gives_nan = [&](const std::vector<std::byte>& bad) {
    for (const ValueType type : kTypes) {
      const Stored x = stored(type, gaussian(elements, 1));
      const Stored nan = decode(*plain, non_finite, elements, type);
      // Ten messages take two launches. The last one is damaged, so all values become NaN.
      std::vector<std::vector<std::byte>> messages(9, good);
      messages.push_back(bad);
      const bool added = decode_on_gpu(*cuda, messages, x, DecodeMode::kAdd, 1, 1) == nan &&
                         decode_on_gpu(*cuda, messages, x, DecodeMode::kAdd, 2, 3) == nan;
      if (!added || decode_on_gpu(*cuda, {bad}, x, DecodeMode::kOverwrite, 1, 1) != nan) {
        return false;
      }
    }
    return true;
  };
  const auto with_word = [&](std::size_t at, std::uint32_t word) {
    std::vector<std::byte> bad = good;
    std::memcpy(&bad[at], &word, 4);
    return bad;
  };
  CHECK(gives_nan(non_finite));
  CHECK(gives_nan(with_word(0, 99)));                // a different number of elements
  CHECK(gives_nan(with_word(4, 0)));                 // a different algorithm's tag
  CHECK(gives_nan(with_word(8, 201)));               // more than the 200 possible entries
  CHECK(gives_nan(with_word(8, 0xffffffffu)));       // many more
  CHECK(gives_nan(with_word(16 + 4 * 199, 20000)));  // an index past the end
  CHECK(gives_nan(with_word(16 + 4 * 199, 0xffffffffu)));
  CHECK(gives_nan(with_word(16 + 4 * 100, 0)));        // indices that do not ascend
  CHECK(gives_nan(with_word(16 + 800, 0x7f800000u)));  // an infinity among the values
  CHECK(gives_nan(with_word(16 + 800 + 4 * 199, 0x7fc00000u)));
  std::vector<std::byte> cut = good;
  cut.resize(good.size() - 4);
  CHECK(gives_nan(cut));
  CHECK_FALSE(gives_nan(good));
}

TEST_CASE("decode-and-add of sparsifiers' messages on the GPU divides as the CPU does") {
  if (!has_gpu()) return;
  const std::int64_t elements = 50001;
  for (const char* algorithm : {"dgc(rho=0.02)", "graddrop(rho=0.6)"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    std::vector<std::vector<std::byte>> messages;
    for (std::uint32_t k = 0; k < 17; ++k) {
      messages.push_back(encode(*plain, gaussian(elements, k), 1, nullptr, {}));
    }
    for (const ValueType type : kTypes) {
      const Stored x = stored(type, gaussian(elements, 99));
      for (const std::size_t peers : {1, 5, 8, 17}) {
        const std::vector<std::vector<std::byte>> some(messages.begin(), messages.begin() + peers);
        for (const auto& [own, sum] : {std::pair(1.0f, 1.0f), std::pair(3.0f, 1.0f),
                                       std::pair(1.0f, 6.0f), std::pair(2.0f, 7.0f)}) {
          INFO(algorithm << ", " << to_string(type) << ", " << peers << ", " << own << ", " << sum);
          REQUIRE(decode_on_gpu(*cuda, some, x, DecodeMode::kAdd, own, sum) ==
                  decode_add(*plain, some, x, own, sum));
        }
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
  for (const char* algorithm : {"onebit", "tbq", "terngrad", "graddrop", "fp16", "bf16"}) {
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
