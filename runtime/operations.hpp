#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"
#include "kernels/codec/codec.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// What the body of an Encode, Decode or Merge works on.
struct Operands {
  std::span<float> slice;
  std::span<std::byte> message;  ///< Encode: room for it; Decode, Merge: the message itself
  kernels::State state;          ///< Encode
  kernels::DrawKey draws;        ///< Encode
  /// Encode on a device: where the message's length goes; null: nowhere.
  std::int64_t* length = nullptr;
  /// Decode of all nodes' messages: these, by rank.
  std::vector<std::span<std::byte>> gathered = {};
};

/// Which draws of the generator an Encode uses in an iteration.
kernels::DrawKey draw_key(const casync::Task& task, std::int64_t first_element, std::uint64_t seed,
                          std::uint64_t iteration);

// `divisor` is the task graph's.

/// Runs an Encode; returns how many bytes of the message are used.
std::int64_t encode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
                    const Operands& operands);

/// A task of a batch, and what it works on.
struct BoundTask {
  const casync::Task* task = nullptr;
  Operands operands;
};

/// What a codec is told of the Encodes of a batch, in memory of any device.
std::vector<kernels::EncodeItem> encode_items(std::span<const BoundTask> batch,
                                              std::uint32_t divisor);

/// What a codec is told of the Decodes of a batch; items point into it.
class DecodeItems {
 public:
  DecodeItems(std::span<const BoundTask> batch, std::uint32_t divisor);
  std::span<const kernels::DecodeItem> items() const { return items_; }
  /// Of Decodes of all nodes' messages, to be decoded behind items(): what is added to the first.
  std::span<const kernels::DecodeItem> others() const { return others_; }

 private:
  std::vector<const std::byte*> messages_;
  std::vector<std::int64_t> bytes_;
  std::vector<kernels::DecodeItem> items_, others_;
};

/// By what a Merge divides: the slice before it adds, and the sum.
struct MergeDivisors {
  float own = 1, sum = 1;
};
MergeDivisors merge_divisors(const casync::Task& task, std::uint32_t divisor);

/// Runs Encodes in one launch; `bytes[i]` is what message i uses.
void encode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec,
            std::span<std::int64_t> bytes);

/// Runs Decodes in one launch. std::runtime_error if a message is damaged.
void decode(std::span<const BoundTask> batch, std::uint32_t divisor, const kernels::Codec& codec);

// Of an AllReduce, `cast` is the codec that it casts with; null: it sums fp32. `message` of the
// operands has room for what is cast.

/// How a library adds what an AllReduce sums.
const transport::Addition& addition(const kernels::Codec* cast);

/// What a rank hands to the library: its slice as it is, or, cast, its N-th in the message.
std::span<std::byte> summands(const casync::Task& task, std::uint32_t divisor,
                              const kernels::Codec* cast, const Operands& operands);

/// Leaves the mean in the slice, once the library has replaced what summands() returned by the sum.
void take_mean(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
               const Operands& operands);

/// Runs an AllReduce: waits for all ranks, and leaves the mean in the slice.
void all_reduce(const casync::Task& task, std::uint32_t divisor, const kernels::Codec* cast,
                transport::Collective& collective, const Operands& operands);

/// Runs a Decode. std::runtime_error if the message is damaged.
void decode(const casync::Task& task, std::uint32_t divisor, const kernels::Codec& codec,
            const Operands& operands);

/// Runs a Merge: the message is as many fp32 values as the slice has.
void merge(const casync::Task& task, std::uint32_t divisor, const Operands& operands);

/// The state arrays that the codec's encoders keep by default.
inline int state_arrays(const kernels::Codec& codec) {
  return codec.traits().error_feedback ? codec.traits().state_arrays : 0;
}

}  // namespace hipress::runtime
