#pragma once

#include <memory>

#include "kernels/codec/codec.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/frames/compiled_algorithm.hpp"

/// The CUDA back end. Every call enqueues on the item's stream and returns; temporary memory comes
/// from the stream's pool (cudaMallocAsync), so nothing waits for the host.
namespace hipress::kernels {

/// A quantiser on the current GPU; the same bits as on the CPU. `program` is its host code, which
/// binds parameters; both must outlive the codec.
std::unique_ptr<Codec> make_cuda_quantizer(const CompiledAlgorithm& program,
                                           const CudaQuantizerKernels& kernels,
                                           const double* values);

/// A sparsifier likewise.
std::unique_ptr<Codec> make_cuda_sparsifier(const CompiledAlgorithm& program,
                                            const CudaSparsifierKernels& kernels,
                                            const double* values);

/// A quantiser of blocks likewise.
std::unique_ptr<Codec> make_cuda_block_quantizer(const CompiledAlgorithm& program,
                                                 const CudaBlockKernels& kernels,
                                                 const double* values);

/// Whichever of them the kernels are for.
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

/// A cast on the current GPU.
template <class Format>
std::unique_ptr<Codec> make_cuda_cast();

}  // namespace hipress::kernels
