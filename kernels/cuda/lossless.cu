// Launches the kernels of the lossless codec.

#include <algorithm>
#include <vector>

#include "kernels/codec/item_checks.hpp"
#include "kernels/cuda/lossless.cuh"
#include "kernels/cuda/temporary.hpp"
#include "kernels/lossless/codec.hpp"

namespace hipress::kernels::lossless {

namespace {

/// Number of rounds of an item: one per message. An item without messages takes one, for the
/// divisions.
std::size_t rounds_of(const DecodeItem& item) {
  return item.elements > 0 ? std::max<std::size_t>(1, item.messages.size()) : 0;
}

/// True for a 16-bit slice in several rounds: its sums stay in fp32, to be rounded only once.
bool waits_in_fp32(const DecodeItem& item) {
  return item.type != ValueType::kFloat32 && rounds_of(item) > 1;
}

/// Offsets of an item's temporary memory, which its messages use one after the other.
struct Places {
  std::size_t spoiled, found, chunks, exponents, sums;
};

class CudaLosslessCodec : public Codec {
 public:
  const CodecTraits& traits() const override {
    static const CodecTraits kTraits{.varies = true};
    return kTraits;
  }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return most_bytes_of(elements);
  }

  void encode(std::span<const EncodeItem> items, void* stream) const override {
    check_encodes(items);
    const auto on = static_cast<cudaStream_t>(stream);
    std::vector<LosslessSlice> slices;
    std::vector<std::size_t> plans;
    MemoryLayout layout;
    for (const EncodeItem& item : items) {
      if (item.elements <= 0) {
        encode_nothing(item, on);
        continue;
      }
      slices.push_back(slice_of(item));
      plans.push_back(layout.add<ChunkPlan>(
          (item.elements - 1) / chunk_elements(slices.back().message_type) + 1));
    }
    if (slices.empty()) return;
    const StreamMemory memory(layout.bytes(), on);
    for (std::size_t i = 0; i < slices.size(); ++i)
      slices[i].plans = memory.at<ChunkPlan>(plans[i]);
    for_each_batch(std::span<const LosslessSlice>(slices), [&](const Batch<LosslessSlice>& batch) {
      launch(measure_chunks, batch.blocks, batch, on);
      launch(place_chunks, batch.count, batch, on);
      launch(write_chunks, batch.blocks, batch, on);
    });
  }

  void decode(std::span<const DecodeItem> items, void* stream) const override {
    check_decodes(items, "lossless");
    const auto on = static_cast<cudaStream_t>(stream);
    std::size_t rounds = 0;
    std::vector<Places> places(items.size());
    MemoryLayout layout;
    for (Places& place : places) place.spoiled = layout.add<std::uint32_t>(1);
    const std::size_t spoiled_bytes = layout.bytes();
    for (std::size_t i = 0; i < items.size(); ++i) {
      rounds = std::max(rounds, rounds_of(items[i]));
      add_places(items[i], places[i], layout);
    }
    if (rounds == 0) return;
    const StreamMemory memory(layout.bytes(), on);
    check_cuda(cudaMemsetAsync(memory.data(), 0, spoiled_bytes, on), "clearing temporary memory");
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<LosslessDecodeSlice> slices;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (round < rounds_of(items[i])) {
          slices.push_back(slice_of(items[i], round, memory, places[i]));
        }
      }
      for_each_batch(std::span<const LosslessDecodeSlice>(slices),
                     [&](const Batch<LosslessDecodeSlice>& batch) {
                       launch(find_chunks, batch.count, batch, on);
                       launch(decode_chunks, batch.blocks, batch, on);
                       launch(put_values, batch.blocks, batch, on);
                     });
    }
  }

 private:
  static LosslessSlice slice_of(const EncodeItem& item) {
    LosslessSlice slice = {};
    slice.values = item.values;
    slice.elements = item.elements;
    slice.type = item.type;
    slice.divisor = Divisor::of(item.divisor);
    slice.message_type = slice.divisor.divides ? ValueType::kFloat32 : item.type;
    slice.message = item.message;
    slice.message_bytes = item.message_bytes;
    return slice;
  }

  static void add_places(const DecodeItem& item, Places& place, MemoryLayout& layout) {
    if (item.elements <= 0) return;
    place.found = layout.add<FoundMessage>(1);
    place.chunks = layout.add<FoundChunk>((item.elements - 1) / kFloatsOfChunk + 1);
    place.exponents = layout.add<std::uint8_t>(item.elements);
    place.sums = layout.add<float>(waits_in_fp32(item) ? item.elements : 0);
  }

  static LosslessDecodeSlice slice_of(const DecodeItem& item, std::size_t round,
                                      const StreamMemory& memory, const Places& place) {
    const bool first = round == 0, last = round + 1 == rounds_of(item);
    const bool waits = waits_in_fp32(item);
    void* const between = waits ? memory.at<float>(place.sums) : item.values;
    const ValueType type_between = waits ? ValueType::kFloat32 : item.type;
    LosslessDecodeSlice slice = {};
    if (!item.messages.empty()) {
      slice.message = item.messages[round];
      slice.message_bytes = item.message_bytes[round];
    }
    slice.mode = item.mode;
    slice.own_divisor = first ? item.own_divisor : 1;
    slice.sum_divisor = last ? item.sum_divisor : 1;
    slice.read = first ? item.values : between;
    slice.read_type = first ? item.type : type_between;
    slice.values = last ? item.values : between;
    slice.type = last ? item.type : type_between;
    slice.elements = item.elements;
    slice.found = memory.at<FoundMessage>(place.found);
    slice.chunks = memory.at<FoundChunk>(place.chunks);
    slice.exponents = memory.at<std::uint8_t>(place.exponents);
    slice.spoiled = memory.at<std::uint32_t>(place.spoiled);
    return slice;
  }
};

}  // namespace

std::unique_ptr<Codec> make_cuda_codec() { return std::make_unique<CudaLosslessCodec>(); }

}  // namespace hipress::kernels::lossless
