#pragma once

#include "kernels/compiled_algorithm.hpp"
#include "kernels/cuda_quantizer.cuh"

/// HIPRESS_EXPORT_QUANTIZER of export_host.hpp, for nvcc: defines
///
///   const CudaQuantizerKernels& hipress_NAME_cuda();
#define HIPRESS_EXPORT_QUANTIZER(NAME, ALGORITHM, PARAMETERS, COUNT)                 \
  namespace hipress::kernels {                                                       \
  const CudaQuantizerKernels& hipress_##NAME##_cuda() {                              \
    static const CudaQuantizerKernels kernels = cuda_quantizer_kernels<ALGORITHM>(); \
    return kernels;                                                                  \
  }                                                                                  \
  }

/// Selectors have no CUDA kernels yet.
#define HIPRESS_EXPORT_SELECTOR(NAME, ALGORITHM, PARAMETERS, COUNT) \
  namespace hipress::kernels {                                      \
  const CudaQuantizerKernels& hipress_##NAME##_cuda() {             \
    static const CudaQuantizerKernels kernels;                      \
    return kernels;                                                 \
  }                                                                 \
  }
