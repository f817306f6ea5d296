#pragma once

#include "kernels/cuda/batch.hpp"
#include "kernels/frames/algorithm_codec.hpp"

namespace hipress::kernels {

/// Base of the launchers of all kinds of algorithms.
class CudaAlgorithm : public AlgorithmCodec {
 protected:
  using AlgorithmCodec::AlgorithmCodec;

  /// Launches a kernel that takes the algorithm, a batch and further arguments.
  template <class Slice, class... Arguments>
  void launch(const void* kernel, std::int64_t blocks, cudaStream_t stream,
              const Batch<Slice>& batch, Arguments... arguments) const {
    void* pointers[] = {const_cast<std::byte*>(bound_.bytes), const_cast<Batch<Slice>*>(&batch),
                        &arguments...};
    check_cuda(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreadsPerBlock),
                                pointers, 0, stream),
               "launching a codec kernel");
  }
};

}  // namespace hipress::kernels
