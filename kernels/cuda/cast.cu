// Casts to fp16 and bf16 on a GPU, element by element.

#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/codec.hpp"
#include "kernels/cuda/decode.hpp"
#include "kernels/frames/cast.hpp"
#include "kernels/frames/casts.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/host/codec.hpp"

namespace hipress::kernels {

namespace {

struct CastSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  float divisor;
  std::uint16_t* codes;
  std::int64_t* message_bytes;
  std::int64_t first_block;
};

/// Elements that a thread processes at a time.
constexpr int kRows = 8;
constexpr std::int64_t kElementsAtOnce = std::int64_t{kRows} * kThreadsPerBlock;

template <class Format>
__global__ void encode_elements(const Batch<CastSlice> batch) {
  const CastSlice& slice = batch.slice_of(blockIdx.x);
  const std::int64_t first = (blockIdx.x - slice.first_block) * kElementsPerBlock;
  const std::int64_t last = min(first + kElementsPerBlock, slice.elements);
  for (std::int64_t i = first + threadIdx.x; i < last; i += kElementsAtOnce) {
    float values[kRows];
    load_rows(slice.values, slice.type, i, kThreadsPerBlock, last, values);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const std::int64_t element = i + row * kThreadsPerBlock;
      if (slice.divisor != 1) values[row] = values[row] / slice.divisor;
      const std::uint32_t code = Format::template encode<float>(values[row]);
      if (element < last) slice.codes[element] = static_cast<std::uint16_t>(code);
    }
  }
  if (last == slice.elements && threadIdx.x == 0) {
    // Pad an odd length with a zero, so that the message is a multiple of 4 bytes.
    if (slice.elements % 2 != 0) slice.codes[slice.elements] = 0;
    if (slice.message_bytes != nullptr) *slice.message_bytes = cast_message_bytes(slice.elements);
  }
}

/// Decodes; a message of the wrong length gives NaN.
template <class Format>
__global__ void decode_elements(const Batch<DecodeSlice> batch) {
  const DecodeSlice& slice = batch.slice_of(blockIdx.x);
  const bool adds = slice.mode == DecodeMode::kAdd;
  const std::int64_t first = (blockIdx.x - slice.first_block) * kElementsPerBlock;
  const std::int64_t last = min(first + kElementsPerBlock, slice.elements);
  for (std::int64_t i = first + threadIdx.x; i < last; i += kElementsAtOnce) {
    float values[kRows] = {};
    if (adds) load_rows(slice.read, slice.read_type, i, kThreadsPerBlock, last, values);
    if (adds && slice.own_divisor != 1) {
      for (float& value : values) value = value / slice.own_divisor;
    }
    for (int message = 0; message < slice.count; ++message) {
      const auto* codes = reinterpret_cast<const std::uint16_t*>(slice.messages[message]);
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const std::int64_t element = i + row * kThreadsPerBlock;
        float decoded = not_a_number();
        if (codes != nullptr && element < last) {
          decoded = Format::template decode<float>(codes[element]);
        }
        values[row] = adds ? values[row] + decoded : decoded;
      }
    }
    if (adds && slice.sum_divisor != 1) {
      for (float& value : values) value = value / slice.sum_divisor;
    }
    store_rows(slice.values, slice.type, i, kThreadsPerBlock, last, values);
  }
}

template <class Format>
class CudaCast : public Codec {
 public:
  const CodecTraits& traits() const override {
    static constexpr CodecTraits kTraits = cast_traits<Format>();
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return cast_message_bytes(elements);
  }

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<CastSlice> slices;
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) {
        encode_nothing(item, on);
        continue;
      }
      slices.push_back({item.values, item.elements, item.type, item.divisor,
                        reinterpret_cast<std::uint16_t*>(item.message), item.message_bytes, 0});
    }
    for_each_batch(std::span<const CastSlice>(slices), [&](const Batch<CastSlice>& batch) {
      launch(encode_elements<Format>, batch.blocks, batch, on);
    });
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, Format::kName);
    const auto on = static_cast<cudaStream_t>(stream);
    decode_in_parts(*this, items, on, [&](const Batch<DecodeSlice>& batch) {
      launch(decode_elements<Format>, batch.blocks, batch, on);
    });
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
