#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/frames/draws.hpp"

/// Interface between the launcher of a block quantiser's kernels (cuda/block_quantizer.cu) and the
/// kernels (cuda/block_quantizer.cuh).
namespace hipress::kernels {

struct BlockEncodeSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  ValueRule rule;
  float* residual;  ///< null without error feedback
  std::byte* message;
  DrawStream draws;
  std::int64_t* message_bytes;
  std::uint32_t* non_finite;  ///< set if the slice or its message has a NaN or infinity
  std::int64_t first_block;
};

/// Kernels as functions or cudaKernel_t; cudaLaunchKernel takes both.
struct CudaBlockKernels {
  const void* encode[kValueTypes] = {};
  const void* conclude = nullptr;
  const void* decode = nullptr;
};

}  // namespace hipress::kernels
