#pragma once

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/quantizer.cuh"
#include "kernels/cuda/sparsifier.cuh"
#include "kernels/frames/compiled_algorithm.hpp"

/// Versions for GPUs of the macros HIPRESS_EXPORT_… of host/export.hpp. Under nvcc they define
///
///   const CudaKernels& SYMBOL_cuda();
///
/// Under NVRTC they name the algorithm `Exported`, and its kernels are looked up by that name.
#ifdef __CUDACC_RTC__
#define HIPRESS_EXPORT_CUDA_(SYMBOL, ALGORITHM, ...) \
  namespace hipress::kernels {                       \
  using Exported = ALGORITHM;                        \
  }
#else
#define HIPRESS_EXPORT_CUDA_(SYMBOL, ALGORITHM, ...) \
  namespace hipress::kernels {                       \
  const CudaKernels& SYMBOL##_cuda() {               \
    static const CudaKernels kernels = __VA_ARGS__;  \
    return kernels;                                  \
  }                                                  \
  }
#endif

#define HIPRESS_EXPORT_QUANTIZER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT) \
  HIPRESS_EXPORT_CUDA_(                                                      \
      SYMBOL, ALGORITHM,                                                     \
      {.kind = CudaKind::kQuantizer, .quantizer = cuda_quantizer_kernels<ALGORITHM>()})
#define HIPRESS_EXPORT_BLOCK_QUANTIZER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT) \
  HIPRESS_EXPORT_CUDA_(SYMBOL, ALGORITHM,                                          \
                       {.kind = CudaKind::kBlocks, .blocks = cuda_block_kernels<ALGORITHM>()})
#define HIPRESS_EXPORT_SPARSIFIER(SYMBOL, NAME, ALGORITHM, PARAMETERS, COUNT) \
  HIPRESS_EXPORT_CUDA_(                                                       \
      SYMBOL, ALGORITHM,                                                      \
      {.kind = CudaKind::kSparsifier, .sparsifier = cuda_sparsifier_kernels<ALGORITHM>()})
