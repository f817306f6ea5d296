#include "kernels/codec/stages.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {

std::int64_t elements_of(Shape shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  return elements;
}

/// A codec's temporary memory is of the order of what it selects, of a number per tile, or of a
/// byte per element; this is more than any of the table's takes that does not say so itself.
std::int64_t Codec::temporary_bytes(std::int64_t elements, std::int64_t /*messages*/) const {
  return std::min(8 * elements, 4 * encoded_bytes(elements)) + elements / 4 + (64 << 10);
}

std::vector<Stage> Codec::stages(Shape shape) const {
  return {{.bytes = encoded_bytes(elements_of(shape)), .values = traits().message_values}};
}

std::int64_t Codec::stage_bytes(Shape shape, int stage, std::uint64_t /*step*/) const {
  return stages(shape).at(static_cast<std::size_t>(stage)).bytes;
}

std::vector<StateArray> Codec::states(Shape shape) const {
  return std::vector<StateArray>(static_cast<std::size_t>(traits().state_arrays),
                                 {.name = "residual", .elements = elements_of(shape)});
}

std::string Codec::refusal(Shape /*shape*/) const { return {}; }

void Codec::encode_stage(int /*stage*/, std::span<const StagedSlice> /*slices*/,
                         void* /*stream*/) const {
  throw std::logic_error("a codec of one stage encodes by encode()");
}

void Codec::decode_stages(std::span<const StagedSlice> /*slices*/, void* /*stream*/) const {
  throw std::logic_error("a codec of one stage decodes by decode()");
}

std::int64_t state_bytes(const Codec& codec, Shape shape) {
  std::int64_t elements = 0;
  for (const StateArray& array : codec.states(shape)) elements += array.elements;
  return elements * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace hipress::kernels
