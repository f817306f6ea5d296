#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/codec/item.hpp"

/// The stages of a codec: it sends a first message of a gradient, needs what has become of it on
/// all nodes for the second, and so on. One that has all to say at once has one stage.
namespace hipress::kernels {

/// The dimensions of a gradient, outermost first.
using Shape = std::span<const std::int64_t>;

/// The product of the dimensions; 1 of none.
inline std::int64_t elements_of(Shape shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  return elements;
}

/// What one stage of a codec sends, for a shape.
struct Stage {
  std::int64_t bytes = 0;  ///< of the message, at most
  ValueType values = ValueType::kFloat32;
  /// The mean of all nodes' messages is the message of the mean: it travels as raw values do, by
  /// any way to average, and no node on the way encodes or decodes. Such a message is a factor.
  bool additive = false;
  int rank = 0;  ///< columns of the factor; 0: it has none
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
  void* values = nullptr;  ///< of `type`; every encode reads them, the decode writes them
  ValueType type = ValueType::kFloat32;
  /// For each stage, Stage::bytes of memory, aligned to 16 bytes: what encode_stage() writes. For
  /// additive messages, the mean over all nodes replaces it before the next stage begins. A later
  /// stage may replace the mean by a result that is the same on all nodes.
  std::span<float* const> factors;
  /// Per array of Codec::states(), what the last step left there.
  std::span<float* const> states;
  DrawKey key;  ///< `step`, and of what is drawn alike on all nodes `seed` and `gradient`
  /// The length in bytes of the one message, for codecs whose messages vary in length
  /// (CodecTraits::varies): an encode writes it and a decode reads it. It lies in host memory, and
  /// exists for host codecs only; null elsewhere.
  std::int64_t* message_bytes = nullptr;
};

}  // namespace hipress::kernels
