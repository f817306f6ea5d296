// The CUDA back end gives the bits of the plain CPU path. Needs a GPU; without one it says so and
// passes.

#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>

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

/// Device memory that goes away with the test.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& content) : count_(content.size()) {
    REQUIRE(cudaMalloc(&data_, std::max<std::size_t>(1, count_) * sizeof(T)) == cudaSuccess);
    REQUIRE(cudaMemcpy(data_, content.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  DeviceArray(DeviceArray&& other) noexcept : count_(other.count_), data_(other.data_) {
    other.data_ = nullptr;
  }
  ~DeviceArray() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> on_host() const {
    std::vector<T> content(count_);
    REQUIRE(cudaMemcpy(content.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return content;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// Encodes on the GPU; the residual is updated where there is one.
std::vector<std::byte> encode_on_gpu(const Codec& codec, const std::vector<float>& inputs,
                                     float divisor, std::vector<float>* residual,
                                     const DrawKey& key) {
  const auto elements = static_cast<std::int64_t>(inputs.size());
  const DeviceArray<float> values(inputs);
  const DeviceArray<float> state(residual != nullptr ? *residual : std::vector<float>());
  const DeviceArray<std::byte> message(
      std::vector<std::byte>(codec.encoded_bytes(elements), std::byte(0xa5)));
  const DeviceArray<std::int64_t> bytes(std::vector<std::int64_t>{-1});
  EncodeItem item;
  item.values = values.data();
  item.elements = elements;
  item.divisor = divisor;
  if (residual != nullptr) item.state = {state.data(), elements};
  item.message = message.data();
  item.key = key;
  item.message_bytes = bytes.data();
  codec.encode({&item, 1});
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(bytes.on_host()[0] == codec.encoded_bytes(elements));
  if (residual != nullptr) *residual = state.on_host();
  return message.on_host();
}

std::vector<float> decode_on_gpu(const Codec& codec,
                                 const std::vector<std::vector<std::byte>>& messages,
                                 const std::vector<float>& x, DecodeMode mode, float own,
                                 float sum) {
  const DeviceArray<float> values(x);
  std::vector<DeviceArray<std::byte>> copies;
  std::vector<const std::byte*> pointers;
  std::vector<std::int64_t> lengths;
  for (const auto& message : messages) {
    copies.emplace_back(message);
    pointers.push_back(copies.back().data());
    lengths.push_back(static_cast<std::int64_t>(message.size()));
  }
  DecodeItem item;
  item.messages = pointers;
  item.message_bytes = lengths;
  item.elements = static_cast<std::int64_t>(x.size());
  item.values = values.data();
  item.mode = mode;
  item.own_divisor = own;
  item.sum_divisor = sum;
  codec.decode({&item, 1});
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return values.on_host();
}

TEST_CASE("CUDA codecs can be made without a GPU") {
  for (const AlgorithmRow& row : algorithms()) {
    const auto codec = make_codec(row.name, Device::kCuda);
    CHECK(codec->encoded_bytes(33) == make_codec(row.name)->encoded_bytes(33));
  }
}

TEST_CASE("messages, residuals and decoded values from the GPU are the CPU's") {
  if (!has_gpu()) return;
  setenv("HIPRESS_CACHE", HIPRESS_TEST_CACHE, 1);
  const DrawKey key{.seed = 5, .step = 6, .node = 7, .first_element = (std::int64_t{1} << 32) - 40};
  // The paths are programs compiled at run time.
  for (const char* algorithm :
       {"onebit", "tbq", "terngrad", "terngrad(b=1)", "terngrad(b=5)", "fp16", "bf16",
        HIPRESS_SOURCE_DIR "/kernels/algorithms/OnebitEncode.pse",
        HIPRESS_SOURCE_DIR "/kernels/algorithms/TerngradEncode.pse(b=5)",
        HIPRESS_SOURCE_DIR "/tests/kernels/data/Spread.pse",
        HIPRESS_SOURCE_DIR "/tests/kernels/data/Spread.pse(b=7)"}) {
    const auto plain = make_codec_for(algorithm, Isa::kScalar);
    const auto cuda = make_codec(algorithm, Device::kCuda);
    for (const std::int64_t elements : kLengths) {
      INFO(algorithm << ", " << elements);
      const std::vector<float> inputs = gaussian(elements, 3);
      for (const float divisor : {1.0f, 3.0f}) {
        REQUIRE(encode_on_gpu(*cuda, inputs, divisor, nullptr, key) ==
                encode(*plain, inputs, divisor, nullptr, key));
      }
      if (plain->traits().error_feedback) {
        std::vector<float> on_gpu = gaussian(elements, 9), on_cpu = on_gpu;
        REQUIRE(encode_on_gpu(*cuda, inputs, 1, &on_gpu, key) ==
                encode(*plain, inputs, 1, &on_cpu, key));
        REQUIRE(same_bits(on_gpu, on_cpu));
      }
      std::vector<std::vector<std::byte>> messages;
      for (std::uint32_t peer = 0; peer < 11; ++peer) {
        messages.push_back(encode(*plain, gaussian(elements, peer), 1, nullptr, {.node = peer}));
      }
      REQUIRE(same_bits(decode_on_gpu(*cuda, {messages[0]}, inputs, DecodeMode::kOverwrite, 1, 1),
                        decode(*plain, messages[0], elements)));
      REQUIRE(same_bits(decode_on_gpu(*cuda, messages, inputs, DecodeMode::kAdd, 3, 7),
                        decode_add(*plain, messages, inputs, 3, 7)));
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
      std::vector<float> inputs(40001, special);
      for (std::size_t i = 0; i < inputs.size(); i += 2) inputs[i] = -inputs[i] * 0.5f;
      INFO(algorithm << ", " << special);
      std::vector<float> on_gpu = gaussian(40001, 9), on_cpu = on_gpu;
      REQUIRE(encode_on_gpu(*cuda, inputs, 1, nullptr, {}) ==
              encode(*plain, inputs, 1, nullptr, {}));
      REQUIRE(encode_on_gpu(*cuda, inputs, 1, &on_gpu, {}) ==
              encode(*plain, inputs, 1, &on_cpu, {}));
      REQUIRE(same_bits(on_gpu, on_cpu));
    }
  }
}

TEST_CASE("a damaged message makes the slice NaN on the GPU") {
  if (!has_gpu()) return;
  const auto cuda = make_codec("onebit", Device::kCuda);
  auto message = encode(*make_codec("onebit"), gaussian(100, 1), 1, nullptr, {});
  const auto is_nan = [](float v) { return std::isnan(v); };
  const auto decoded = [&] {
    return decode_on_gpu(*cuda, {message}, std::vector<float>(100), DecodeMode::kOverwrite, 1, 1);
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
