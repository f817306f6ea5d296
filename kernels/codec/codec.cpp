#include "kernels/codec/codec.hpp"

#include <algorithm>
#include <stdexcept>

namespace hipress::kernels {

/// Default bound. A codec needs temporary memory for the selected entries, a number per tile, or a
/// byte per element. The bound exceeds the need of every algorithm in the table that does not
/// override this.
std::int64_t Codec::temporary_bytes(std::int64_t elements, std::int64_t /*messages*/) const {
  return std::min(8 * elements, 4 * encoded_bytes(elements)) + elements / 4 + (64 << 10);
}

void Codec::check_lengths(std::span<const DecodeItem> /*items*/) const {}

std::vector<Stage> Codec::stages(Shape shape) const {
  return {{.bytes = encoded_bytes(elements_of(shape)), .values = traits().message_values}};
}

std::int64_t Codec::stage_bytes(Shape shape, int stage, std::uint64_t /*step*/) const {
  return stages(shape).at(static_cast<std::size_t>(stage)).bytes;
}

std::vector<StateArray> Codec::states(Shape shape) const {
  if (traits().state_arrays == 0) return {};
  return {{.name = "residual", .elements = traits().state_arrays * elements_of(shape)}};
}

std::string Codec::refusal(Shape /*shape*/) const { return {}; }

namespace {

/// Checks that a slice has the memory that a codec of one stage needs: one message, its states in
/// one array, and the message's length if that varies.
void require_one_stage(const Codec& codec, const StagedSlice& slice) {
  const bool has_state = codec.traits().state_arrays == 0 ||
                         (slice.states.size() == 1 && slice.states.front() != nullptr);
  const bool has_length = !codec.traits().varies || slice.message_bytes != nullptr;
  if (slice.factors.size() == 1 && has_state && has_length) return;
  throw std::invalid_argument(
      "a codec of one stage needs one message, its states in one array, and a place for the "
      "message's length if that varies");
}

}  // namespace

void Codec::encode_stage(int stage, std::span<const StagedSlice> slices, void* stream) const {
  if (stage != 0) throw std::invalid_argument("a codec of one stage has no other than stage 0");
  std::vector<EncodeItem> items;
  for (const StagedSlice& slice : slices) {
    require_one_stage(*this, slice);
    const std::int64_t elements = elements_of(slice.shape);
    items.push_back({.values = slice.values,
                     .type = slice.type,
                     .elements = elements,
                     .state = {.data = slice.states.empty() ? nullptr : slice.states.front(),
                               .stride = elements},
                     .message = reinterpret_cast<std::byte*>(slice.factors.front()),
                     .key = slice.key,
                     .message_bytes = slice.message_bytes});
  }
  encode(items, stream);
}

void Codec::decode_stages(std::span<const StagedSlice> slices, void* stream) const {
  std::vector<const std::byte*> messages(slices.size());
  std::vector<std::int64_t> lengths(slices.size());
  std::vector<DecodeItem> items;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const StagedSlice& slice = slices[i];
    require_one_stage(*this, slice);
    messages[i] = reinterpret_cast<const std::byte*>(slice.factors.front());
    const std::int64_t elements = elements_of(slice.shape);
    lengths[i] = traits().varies ? *slice.message_bytes : encoded_bytes(elements);
    items.push_back({.messages = {&messages[i], 1},
                     .message_bytes = {&lengths[i], 1},
                     .elements = elements,
                     .values = slice.values,
                     .type = slice.type});
  }
  decode(items, stream);
}

std::int64_t state_bytes(const Codec& codec, Shape shape) {
  std::int64_t elements = 0;
  for (const StateArray& array : codec.states(shape)) elements += array.elements;
  return elements * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace hipress::kernels
