#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/codec/item.hpp"

/// Stages of a codec. Each stage sends one message of a gradient; a later stage needs the means of
/// the earlier messages over all nodes. Most codecs have one stage.
namespace hipress::kernels {

/// The dimensions of a gradient, outermost first.
using Shape = std::span<const std::int64_t>;

/// The product of the dimensions; 1 if there are none.
inline std::int64_t elements_of(Shape shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  return elements;
}

/// Message of one stage of a codec, for a shape.
struct Stage {
  std::int64_t bytes = 0;  ///< upper bound of the message's size
  ValueType values = ValueType::kFloat32;
  /// The mean of all nodes' messages is the message of the mean. It travels like raw values,
  /// through any averaging collective, and no node decodes or encodes it on the way. Such a message
  /// is called a factor.
  bool additive = false;
  int rank = 0;  ///< columns of the factor; 0 if it is not a matrix
};

/// An array that an encoder keeps between steps.
struct StateArray {
  std::string_view name;      ///< "residual" …
  std::int64_t elements = 0;  ///< fp32; zero when new
};

/// One gradient on its way through the stages of an iteration. Pointers are to memory of the
/// codec's device.
struct StagedSlice {
  Shape shape;
  void* values = nullptr;  ///< numbers of `type`; read by every encode, written by the decode
  ValueType type = ValueType::kFloat32;
  /// Memory per stage for the output of encode_stage(): Stage::bytes, aligned to 16 bytes. If
  /// messages are additive, the mean over all nodes replaces the output before the next stage
  /// begins. A later stage may replace the mean by a result that is the same on all nodes.
  std::span<float* const> factors;
  /// The arrays of Codec::states(), as the last step left them.
  std::span<float* const> states;
  DrawKey key;  ///< draws shared by all nodes use `seed`, `step` and `gradient` only
  /// Length in bytes of the one message, for codecs with CodecTraits::varies: an encode writes it
  /// and a decode reads it. In host memory, for host codecs only; null elsewhere.
  std::int64_t* message_bytes = nullptr;
};

}  // namespace hipress::kernels
