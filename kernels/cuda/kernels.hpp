#pragma once

#include "kernels/cuda/block_quantizer_kernels.hpp"
#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/cuda/sparsifier_kernels.hpp"
#include "kernels/frames/cuda_shape.hpp"

namespace hipress::kernels {

/// Kernels of one algorithm. Only the table of its kind is filled.
struct CudaKernels {
  CudaKind kind = CudaKind::kNone;
  CudaQuantizerKernels quantizer = {};
  CudaSparsifierKernels sparsifier = {};
  CudaBlockKernels blocks = {};
};

}  // namespace hipress::kernels
