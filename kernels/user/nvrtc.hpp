#pragma once

#include <memory>
#include <string>
#include <vector>

/// NVRTC, CUDA's compiler as a library. It is found when it is first needed, so that our programs
/// start on machines without it; and it needs neither a GPU nor a toolkit's headers.
namespace hipress::kernels {

/// Machine code for one architecture.
struct GpuCode {
  std::string cubin;
  std::vector<std::string> names;  ///< in the cubin, of the kernels asked for, in that order
};

/// Where NVRTC may be, the first choice first: in the toolkits of io::cuda_toolkits(), where the
/// dynamic linker looks, in the toolkit of this build, in /usr/local/cuda.
std::vector<std::string> nvrtc_libraries();

class Nvrtc {
 public:
  /// Loads the first of `libraries` that can be; io::RunError with the remedy if none can.
  explicit Nvrtc(const std::vector<std::string>& libraries = nvrtc_libraries());
  ~Nvrtc();

  /// "13.0"
  std::string version() const;

  /// The architecture to compile for where the GPU has compute capability `capability` (90 for
  /// 9.0): the newest that is not newer, of the same generation. io::RunError if there is none.
  int architecture_for(int capability) const;

  /// What compile() makes depends on these besides code, headers and version.
  static std::vector<std::string> flags(int architecture);

  /// Compiles generated code. `kernels` are names as C++ has them, templates with arguments; `path`
  /// is for messages. io::RunError with the start of the log if that fails.
  GpuCode compile(const std::string& path, const std::string& code,
                  const std::vector<std::string>& kernels, int architecture) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

}  // namespace hipress::kernels
