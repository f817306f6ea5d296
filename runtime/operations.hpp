#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"
#include "kernels/codec/codec.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Operands of an Encode, Decode or Merge.
struct Operands {
  std::span<float> slice;
  std::span<std::byte> message;  ///< Encode: buffer for it; Decode, Merge: the message itself
  kernels::State state;          ///< Encode
  kernels::DrawKey draws;        ///< Encode
  /// Encode on a device: output for the message's length, or null.
  std::int64_t* length = nullptr;
  /// Decode of all nodes' messages: the messages by rank.
  std::vector<std::span<std::byte>> gathered = {};
};

/// Key of an Encode's random draws in an iteration.
kernels::DrawKey draw_key(const casync::Task& task, std::int64_t first_element, std::uint64_t seed,
                          std::uint64_t iteration);

// In the following functions, `divisor` is TaskGraph::divisor.

/// Runs an Encode; returns the message's length in bytes.
std::int64_t encode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
                    const Operands& operands);

/// A task of a batch with its operands.
struct BoundTask {
  const casync::Task* task = nullptr;
  Operands operands;
};

/// Codec arguments for the Encodes of a batch, in memory of any device.
std::vector<kernels::EncodeItem> encode_items(std::span<const BoundTask> batch,
                                              std::uint32_t divisor);

/// Codec arguments for the Decodes of a batch; items point into this object.
class DecodeItems {
 public:
  DecodeItems(std::span<const BoundTask> batch, std::uint32_t divisor);
  std::span<const kernels::DecodeItem> items() const { return items_; }
  /// Second pass for Decodes of all nodes' messages, to run after items(): adds the messages of the
  /// other ranks to the first one.
  std::span<const kernels::DecodeItem> others() const { return others_; }

 private:
  std::vector<const std::byte*> messages_;
  std::vector<std::int64_t> bytes_;
  std::vector<kernels::DecodeItem> items_, others_;
};

/// Divisors of a Merge: `own` divides its slice before the addition, `sum` divides the sum.
struct MergeDivisors {
  float own = 1, sum = 1;
};
MergeDivisors merge_divisors(const casync::Task& task, std::uint32_t divisor);

/// Runs Encodes in one launch; sets `bytes[i]` to the length of message i.
void encode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec,
            std::span<std::int64_t> bytes);

/// Runs Decodes in one launch. Throws std::runtime_error if a message is damaged.
void decode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec);

// In the functions for an AllReduce, `cast` is the codec that it casts with (null: it sums fp32).
// The operands' `message` is the buffer for the cast values.

/// Addition that an AllReduce's library uses.
const transport::Addition& addition(const kernels::Codec* cast);

/// A rank's input to the library: the raw slice or, with `cast`, the slice, divided by `divisor`
/// and cast into the message.
std::span<std::byte> summands(const casync::Task& task, std::uint32_t divisor,
                              const kernels::Codec* cast, const Operands& operands);

/// Writes the mean to the slice, after the library has replaced summands() by the sum.
void take_mean(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
               const Operands& operands);

/// Runs an AllReduce, which waits for all ranks and leaves the mean in the slice.
void all_reduce(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
                transport::Collective& collective, const Operands& operands);

/// Runs a Decode. Throws std::runtime_error if the message is damaged.
void decode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
            const Operands& operands);

/// Runs a Merge; the message holds one fp32 value per element of the slice.
void merge(const casync::Task& task, std::uint32_t divisor, const Operands& operands);

/// Number of state arrays that the codec's encoders keep by default.
inline int state_arrays(const kernels::Codec& codec) {
  return codec.traits().error_feedback ? codec.traits().state_arrays : 0;
}

}  // namespace hipress::runtime
