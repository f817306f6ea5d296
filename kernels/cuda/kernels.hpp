#pragma once

#include "kernels/cuda/quantizer_kernels.hpp"
#include "kernels/cuda/shape.hpp"
#include "kernels/cuda/sparsifier_kernels.hpp"

namespace hipress::kernels {

/// One algorithm's kernels, of whatever kind it is; the table of the other kind is empty.
struct CudaKernels {
  CudaKind kind = CudaKind::kNone;
  CudaQuantizerKernels quantizer = {};
  CudaSparsifierKernels sparsifier = {};
};

}  // namespace hipress::kernels
