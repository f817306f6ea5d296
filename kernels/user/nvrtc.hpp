#pragma once

#include <memory>
#include <string>
#include <vector>

/// NVRTC, CUDA's compiler as a library. It is loaded on first use, so that programs start on
/// machines without it. It needs neither a GPU nor a toolkit's headers.
namespace hipress::kernels {

/// Machine code for one architecture.
struct GpuCode {
  std::string cubin;
  std::vector<std::string> names;  ///< mangled names of the requested kernels, in their order
};

/// Candidate paths of NVRTC, in order of preference: the toolkits of io::cuda_toolkits(), the
/// dynamic linker's search path, the toolkit of this build, /usr/local/cuda.
std::vector<std::string> nvrtc_libraries();

class Nvrtc {
 public:
  /// Loads the first loadable of `libraries`; throws io::RunError, with the remedy, if there is
  /// none.
  explicit Nvrtc(const std::vector<std::string>& libraries = nvrtc_libraries());
  ~Nvrtc();

  /// Version of NVRTC, such as "13.0".
  std::string version() const;

  /// Architecture to compile for, given a GPU's compute capability `capability` (90 for 9.0): the
  /// newest of the GPU's generation that is not newer than the GPU. Throws io::RunError if NVRTC
  /// supports no such architecture.
  int architecture_for(int capability) const;

  /// Compiler flags. The result of compile() depends on them, the code, the headers and the
  /// version.
  static std::vector<std::string> flags(int architecture);

  /// Compiles generated code. `kernels` are C++ names, with their template arguments; `path` is for
  /// error messages. On failure, throws io::RunError with the start of the compiler's log.
  GpuCode compile(const std::string& path, const std::string& code,
                  const std::vector<std::string>& kernels, int architecture) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

}  // namespace hipress::kernels
