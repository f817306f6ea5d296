#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hipress::runtime {

/// cuBLAS handle on the GPU that was current at its creation. The library is loaded at run time and
/// not shipped.
class Cublas {
 public:
  virtual ~Cublas() = default;
  /// Enqueues c = a·b for row-major square matrices, in TF32 where available; false if cuBLAS
  /// fails.
  virtual bool multiply(const float* a, const float* b, float* c, std::int64_t n,
                        cudaStream_t stream) = 0;
};

/// Candidate files of the library, most likely first: the linker's search path, then CUDA toolkits.
std::vector<std::string> cublas_libraries();

/// Handle of the first usable library; null if no library has all functions and supports the GPU.
std::unique_ptr<Cublas> make_cublas(const std::vector<std::string>& libraries);

}  // namespace hipress::runtime
