// fp16 and bf16 on a GPU, element by element.

#include <vector>

#include "kernels/cast.hpp"
#include "kernels/casts.hpp"
#include "kernels/cuda_batch.hpp"
#include "kernels/cuda_codec.hpp"
#include "kernels/host_codec.hpp"

namespace hipress::kernels {

namespace {

struct EncodeSlice {
  const float* values;
  std::int64_t elements;
  float divisor;
  std::uint16_t* codes;
  std::int64_t* message_bytes;
  std::int64_t first_block;
};

template <class Format>
__global__ void encode_elements(const Batch<EncodeSlice> batch) {
  const EncodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = (blockIdx.x - slice.first_block) * kElementsPerBlock;
  const std::int64_t last = min(first + kElementsPerBlock, slice.elements);
#pragma unroll 8
  for (std::int64_t i = first + threadIdx.x; i < last; i += kThreadsPerBlock) {
    float value = slice.values[i];
    if (slice.divisor != 1) value = value / slice.divisor;
    slice.codes[i] = static_cast<std::uint16_t>(Format::template encode<float>(value));
  }
  if (last == slice.elements && threadIdx.x == 0) {
    // An odd length is rounded up with a zero, so that the message is a multiple of 4 bytes.
    if (slice.elements % 2 != 0) slice.codes[slice.elements] = 0;
    if (slice.message_bytes != nullptr) *slice.message_bytes = cast_message_bytes(slice.elements);
  }
}

/// One message of a slice. Adding several is several slices in as many launches, the first with the
/// own divisor, the last with the sum's.
struct DecodeSlice {
  const std::uint16_t* codes;  ///< null: nothing to add
  bool damaged;                ///< the length is wrong: all NaN
  DecodeMode mode;
  float own_divisor, sum_divisor;
  float* values;
  std::int64_t elements;
  std::int64_t first_block;
};

template <class Format>
__global__ void decode_elements(const Batch<DecodeSlice> batch) {
  const DecodeSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = (blockIdx.x - slice.first_block) * kElementsPerBlock;
  const std::int64_t last = min(first + kElementsPerBlock, slice.elements);
#pragma unroll 8
  for (std::int64_t i = first + threadIdx.x; i < last; i += kThreadsPerBlock) {
    float value = slice.damaged ? not_a_number() : 0.0f;
    if (slice.codes != nullptr) value = Format::template decode<float>(slice.codes[i]);
    if (slice.mode == DecodeMode::kAdd) {
      float own = slice.values[i];
      if (slice.own_divisor != 1) own = own / slice.own_divisor;
      const bool adds = slice.damaged || slice.codes != nullptr;
      value = adds ? own + value : own;
      if (slice.sum_divisor != 1) value = value / slice.sum_divisor;
    }
    slice.values[i] = value;
  }
}

template <class Format>
class CudaCast : public Codec {
 public:
  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = cast_traits();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return cast_message_bytes(elements);
  }

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    std::vector<EncodeSlice> slices;
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) continue;
      slices.push_back({item.values, item.elements, item.divisor,
                        reinterpret_cast<std::uint16_t*>(item.message), item.message_bytes, 0});
    }
    for_each_batch(std::span<const EncodeSlice>(slices), [&](const Batch<EncodeSlice>& batch) {
      encode_elements<Format><<<static_cast<unsigned>(batch.blocks), kThreadsPerBlock, 0,
                                static_cast<cudaStream_t>(stream)>>>(batch);
    });
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    std::size_t parts = 0;
    for (const DecodeItem& item : items) parts = std::max(parts, parts_of(item));
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<DecodeSlice> slices;
      for (const DecodeItem& item : items) {
        if (item.elements > 0 && part < parts_of(item)) slices.push_back(part_of(item, part));
      }
      for_each_batch(std::span<const DecodeSlice>(slices), [&](const Batch<DecodeSlice>& batch) {
        decode_elements<Format><<<static_cast<unsigned>(batch.blocks), kThreadsPerBlock, 0,
                                  static_cast<cudaStream_t>(stream)>>>(batch);
      });
    }
  }

 private:
  /// One launch per message; one if there is nothing to add, for the divisions.
  static std::size_t parts_of(const DecodeItem& item) {
    return std::max<std::size_t>(1, item.messages.size());
  }

  DecodeSlice part_of(const DecodeItem& item, std::size_t part) const {
    DecodeSlice slice = {};
    if (part < item.messages.size()) {
      slice.damaged = item.message_bytes[part] != encoded_bytes(item.elements);
      if (!slice.damaged) {
        slice.codes = reinterpret_cast<const std::uint16_t*>(item.messages[part]);
      }
    }
    slice.mode = item.mode;
    slice.own_divisor = part == 0 ? item.own_divisor : 1;
    slice.sum_divisor = part + 1 == parts_of(item) ? item.sum_divisor : 1;
    slice.values = item.values;
    slice.elements = item.elements;
    return slice;
  }
};

}  // namespace

template <class Format>
std::unique_ptr<Codec> make_cuda_cast() {
  return std::make_unique<CudaCast<Format>>();
}

#define HIPRESS_CAST(Format) template std::unique_ptr<Codec> make_cuda_cast<Format>();
HIPRESS_FOR_EACH_CAST(HIPRESS_CAST)
#undef HIPRESS_CAST

}  // namespace hipress::kernels
