#pragma once

#include "kernels/cuda_quantizer_kernels.hpp"
#include "kernels/cuda_selector_kernels.hpp"
#include "kernels/cuda_shape.hpp"

namespace hipress::kernels {

/// One algorithm's kernels, of whatever kind it is; the table of the other kind is empty.
struct CudaKernels {
  CudaKind kind = CudaKind::kNone;
  CudaQuantizerKernels quantizer = {};
  CudaSelectorKernels selector = {};
};

}  // namespace hipress::kernels
