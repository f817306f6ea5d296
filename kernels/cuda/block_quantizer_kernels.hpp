#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/codec/item.hpp"
#include "kernels/codec/slice.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/frames/draws.hpp"

/// What the launcher of a quantiser of blocks' kernels (cuda/block_quantizer.cu) and the kernels
/// themselves (cuda/block_quantizer.cuh) agree on.
namespace hipress::kernels {

/// One slice that is encoded.
struct BlockEncodeSlice {
  const void* values;
  std::int64_t elements;
  ValueType type;
  ValueRule rule;
  float* residual;  ///< null: none
  std::byte* message;
  DrawStream draws;
  std::int64_t* message_bytes;
  std::uint32_t* non_finite;  ///< not 0: the slice holds a NaN or infinity, or comes to one
  std::int64_t first_block;
};

/// Functions or cudaKernel_t, whatever cudaLaunchKernel takes.
struct CudaBlockKernels {
  const void* encode[kValueTypes] = {};
  const void* conclude = nullptr;
  const void* decode = nullptr;
};

}  // namespace hipress::kernels
