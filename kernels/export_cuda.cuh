#pragma once

#include "kernels/compiled_algorithm.hpp"
#include "kernels/cuda_quantizer.cuh"

/// HIPRESS_EXPORT_QUANTIZER of export_host.hpp for GPUs. Under nvcc it defines
///
///   const CudaQuantizerKernels& hipress_NAME_cuda();
///
/// Under NVRTC the kernels are asked for by name, as kernels of `Exported`.
#ifdef __CUDACC_RTC__
#define HIPRESS_EXPORT_QUANTIZER(NAME, ALGORITHM, PARAMETERS, COUNT) \
  namespace hipress::kernels {                                       \
  using Exported = ALGORITHM;                                        \
  }
#else
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
#endif
