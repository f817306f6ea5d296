#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "casync/task_graph.hpp"
#include "kernels/codec.hpp"

namespace hipress::executor {

/// What the body of an Encode, Decode or Merge works on.
struct Operands {
  std::span<float> slice;
  std::span<std::byte> message;  ///< Encode: room for it; Decode, Merge: the message itself
  kernels::State state;          ///< Encode
  kernels::DrawKey draws;        ///< Encode
};

/// Which draws of the generator an Encode uses in an iteration.
kernels::DrawKey draw_key(const casync::Task& task, std::int64_t first_element, std::uint64_t seed,
                          std::uint64_t iteration);

/// Runs an Encode of one of `nodes` nodes; returns how many bytes of the message are used.
std::int64_t encode(const casync::Task& task, std::uint32_t nodes, const kernels::Codec& codec,
                    const Operands& operands);

/// Runs a Decode. std::runtime_error if the message is damaged.
void decode(const casync::Task& task, std::uint32_t nodes, const kernels::Codec& codec,
            const Operands& operands);

/// Runs a Merge: the message is as many fp32 values as the slice has.
void merge(const casync::Task& task, std::uint32_t nodes, const Operands& operands);

/// The state arrays that the codec's encoders keep by default.
inline int state_arrays(const kernels::Codec& codec) {
  return codec.traits().error_feedback ? codec.traits().state_arrays : 0;
}

}  // namespace hipress::executor
