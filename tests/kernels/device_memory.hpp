#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/cuda/merge.hpp"
#include "tests/kernels/reference.hpp"

/// Slices and messages in device memory, for tests of the CUDA back end on a GPU or emulated.
namespace hipress::kernels::testing {

/// Array in device memory, freed by the destructor.
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

/// The first `bytes` bytes of a message: those that an encode has written.
inline std::vector<std::byte> first_bytes(const DeviceArray<std::byte>& message,
                                          std::int64_t bytes) {
  std::vector<std::byte> written = message.on_host();
  REQUIRE(bytes >= 0);
  REQUIRE(bytes <= static_cast<std::int64_t>(written.size()));
  written.resize(static_cast<std::size_t>(bytes));
  return written;
}

/// A gradient in device memory, `offset` elements after the beginning of an allocation.
class DeviceGradient {
 public:
  DeviceGradient(const Stored& content, int offset)
      : type_(content.type),
        skipped_(static_cast<std::size_t>(offset * bytes_per_value(content.type))),
        memory_(shifted(content, skipped_)) {}
  void* data() const { return memory_.data() + skipped_; }
  Stored on_host() const {
    const std::vector<std::byte> all = memory_.on_host();
    return {type_, {all.begin() + static_cast<std::ptrdiff_t>(skipped_), all.end()}};
  }

 private:
  static std::vector<std::byte> shifted(const Stored& content, std::size_t by) {
    std::vector<std::byte> bytes(by);
    bytes.insert(bytes.end(), content.bytes.begin(), content.bytes.end());
    return bytes;
  }

  ValueType type_;
  std::size_t skipped_;
  DeviceArray<std::byte> memory_;
};

/// Encodes on the GPU, and updates the residual if there is one.
inline std::vector<std::byte> encode_on_gpu(const Codec& codec, const Stored& inputs, float divisor,
                                            std::vector<float>* residual, const DrawKey& key,
                                            int offset = 0) {
  const std::int64_t elements = inputs.elements();
  const DeviceGradient values(inputs, offset);
  const DeviceArray<float> state(residual != nullptr ? *residual : std::vector<float>());
  const DeviceArray<std::byte> message(
      std::vector<std::byte>(codec.encoded_bytes(elements), std::byte(0xa5)));
  const DeviceArray<std::int64_t> bytes(std::vector<std::int64_t>{-1});
  EncodeItem item;
  item.values = values.data();
  item.type = inputs.type;
  item.elements = elements;
  item.divisor = divisor;
  if (residual != nullptr) item.state = {state.data(), elements};
  item.message = message.data();
  item.key = key;
  item.message_bytes = bytes.data();
  codec.encode({&item, 1});
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  if (residual != nullptr) *residual = state.on_host();
  return first_bytes(message, bytes.on_host()[0]);
}

inline Stored decode_on_gpu(const Codec& codec, const std::vector<std::vector<std::byte>>& messages,
                            const Stored& x, DecodeMode mode, float own, float sum,
                            int offset = 0) {
  const DeviceGradient values(x, offset);
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
  item.elements = x.elements();
  item.values = values.data();
  item.type = x.type;
  item.mode = mode;
  item.own_divisor = own;
  item.sum_divisor = sum;
  codec.decode({&item, 1});
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return values.on_host();
}

/// Merges on the GPU: x = (x / own + y) / sum; without y if it is empty.
inline std::vector<float> merge_on_gpu_of(const std::vector<float>& y, const std::vector<float>& x,
                                          float own, float sum) {
  const DeviceArray<float> other(y), values(x);
  merge_on_gpu(y.empty() ? nullptr : other.data(), static_cast<std::int64_t>(x.size()),
               values.data(), own, sum, nullptr);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return values.on_host();
}

inline void require_same_merges(std::int64_t elements) {
  const std::vector<float> x = gaussian(elements, 1), y = gaussian(elements, 2);
  for (const float own : {1.0f, 3.0f}) {
    for (const float sum : {1.0f, 7.0f}) {
      for (const bool adds : {false, true}) {
        std::vector<float> expected = x;
        const float* const other = y.data();
        merge(std::span(&other, adds ? 1 : 0), elements, expected.data(), own, sum);
        REQUIRE(same_bits(merge_on_gpu_of(adds ? y : std::vector<float>(), x, own, sum), expected));
      }
    }
  }
}

}  // namespace hipress::kernels::testing
