#pragma once

#include <memory>

#include "kernels/codec/codec.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/frames/compiled_algorithm.hpp"

/// The CUDA back end. A call enqueues its work on the given stream and returns. Temporary memory
/// comes from the stream's pool (cudaMallocAsync), so nothing waits for the host.
namespace hipress::kernels {

/// Makes a quantiser's codec for the current GPU; messages have the bits of the CPU's. `program` is
/// the algorithm's host code, which binds parameters. `program` and `kernels` must outlive the
/// codec.
std::unique_ptr<Codec> make_cuda_quantizer(const CompiledAlgorithm& program,
                                           const CudaQuantizerKernels& kernels,
                                           const double* values);

/// Makes a sparsifier's codec for the current GPU likewise.
std::unique_ptr<Codec> make_cuda_sparsifier(const CompiledAlgorithm& program,
                                            const CudaSparsifierKernels& kernels,
                                            const double* values);

/// Makes a block quantiser's codec for the current GPU likewise.
std::unique_ptr<Codec> make_cuda_block_quantizer(const CompiledAlgorithm& program,
                                                 const CudaBlockKernels& kernels,
                                                 const double* values);

/// Makes the codec of the kind that the kernels belong to.
inline std::unique_ptr<Codec> make_cuda_algorithm(const CompiledAlgorithm& program,
                                                  const CudaKernels& kernels,
                                                  const double* values) {
  switch (kernels.kind) {
    case CudaKind::kSparsifier:
      return make_cuda_sparsifier(program, kernels.sparsifier, values);
    case CudaKind::kBlocks:
      return make_cuda_block_quantizer(program, kernels.blocks, values);
    default:
      return make_cuda_quantizer(program, kernels.quantizer, values);
  }
}

/// Makes a cast's codec for the current GPU.
template <class Format>
std::unique_ptr<Codec> make_cuda_cast();

}  // namespace hipress::kernels
