#pragma once

#include <optional>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/cuda/temporary.hpp"

/// Common preparation of all decodes on a GPU: splits items with many messages into parts of
/// kMessagesPerLaunch.
namespace hipress::kernels {

/// Number of launches that an item needs. An item without messages needs one, for the divisions.
inline std::size_t parts_of(const DecodeItem& item) {
  return std::max<std::size_t>(
      1, (item.messages.size() + kMessagesPerLaunch - 1) / kMessagesPerLaunch);
}

/// Part `part` of an item whose messages should have `bytes` bytes. `sums` holds the sums so far
/// between the launches of its parts.
inline DecodeSlice part_of(const DecodeItem& item, std::size_t part, std::int64_t bytes, void* sums,
                           ValueType type_of_sums) {
  const bool first = part == 0, last = part + 1 == parts_of(item);
  const std::size_t from = part * kMessagesPerLaunch;
  const std::size_t to = std::min(from + kMessagesPerLaunch, item.messages.size());
  DecodeSlice slice = {};
  for (std::size_t i = from; i < to; ++i) {
    slice.messages[i - from] = item.message_bytes[i] == bytes ? item.messages[i] : nullptr;
  }
  slice.count = static_cast<int>(to - from);
  slice.mode = item.mode;
  slice.own_divisor = first ? item.own_divisor : 1;
  slice.sum_divisor = last ? item.sum_divisor : 1;
  slice.read = first ? item.values : sums;
  slice.read_type = first ? item.type : type_of_sums;
  slice.values = last ? item.values : sums;
  slice.type = last ? item.type : type_of_sums;
  slice.elements = item.elements;
  return slice;
}

/// Calls `launch(batch)` for all parts of all items. A part of a slice depends on the previous
/// part, so each has its own launch. Between the parts, the sums of a 16-bit slice stay in fp32 in
/// temporary memory, so that they are rounded only once.
template <class Launch>
void decode_in_parts(const Codec& codec, std::span<const DecodeItem> items, cudaStream_t stream,
                     const Launch& launch) {
  std::size_t parts = 0;
  std::int64_t kept = 0;  // number of sums
  std::vector<std::int64_t> first_sum;
  for (const DecodeItem& item : items) {
    parts = std::max(parts, parts_of(item));
    first_sum.push_back(kept);
    if (item.type != ValueType::kFloat32 && parts_of(item) > 1) kept += item.elements;
  }
  std::optional<StreamMemory> memory;
  if (kept > 0) memory.emplace(static_cast<std::size_t>(kept) * sizeof(float), stream);
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<DecodeSlice> slices;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const DecodeItem& item = items[i];
      if (item.elements <= 0 || part >= parts_of(item)) continue;
      const bool rounds = item.type != ValueType::kFloat32 && parts_of(item) > 1;
      void* const sums = rounds ? static_cast<float*>(memory->data()) + first_sum[i] : item.values;
      slices.push_back(
          part_of(item, part, codec.encoded_bytes(item.elements), sums, ValueType::kFloat32));
    }
    for_each_batch(std::span<const DecodeSlice>(slices), launch);
  }
}

}  // namespace hipress::kernels
