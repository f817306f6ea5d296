#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hipress::runtime {

/// A handle of cuBLAS on the GPU that was current when it was made. The library is looked for when
/// the program runs, and is not shipped.
class Cublas {
 public:
  virtual ~Cublas() = default;
  /// c = a·b, square, row by row, in TF32 where the GPU has it; false if cuBLAS could not.
  virtual bool multiply(const float* a, const float* b, float* c, std::int64_t n,
                        cudaStream_t stream) = 0;
};

/// Where it is looked for, the most likely first: where the linker looks, then in CUDA's toolkits.
std::vector<std::string> cublas_libraries();

/// Of the first library that has what is needed and takes the GPU; null: there is none.
std::unique_ptr<Cublas> make_cublas(const std::vector<std::string>& libraries);

}  // namespace hipress::runtime
