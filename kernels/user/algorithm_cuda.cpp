#include "kernels/user/algorithm_cuda.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "kernels/user/program_cache.hpp"

namespace hipress::kernels {

namespace {

/// A kernel that the launcher needs, and the destination of its handle.
struct NamedKernel {
  std::string name = {};
  const void** handle = nullptr;
};

/// Names of kernels, as templates over the exported algorithm.
class KernelNames {
 public:
  void add(std::string_view name, const void*& handle, std::string_view arguments = "") {
    NamedKernel& one = named_.emplace_back();
    one.name = fmt::format("hipress::kernels::{}<hipress::kernels::Exported{}>", name, arguments);
    one.handle = &handle;
  }
  std::vector<NamedKernel> take() { return std::move(named_); }

 private:
  std::vector<NamedKernel> named_;
};

/// The kernels that cuda_quantizer_kernels() of cuda/quantizer.cuh lists for a built-in algorithm.
std::vector<NamedKernel> quantizer_kernels(const CompiledAlgorithm& algorithm,
                                           CudaQuantizerKernels& kernels) {
  KernelNames names;
  const auto add_measure = [&](int pass, CudaFeedback feedback, int type) {
    const int number = static_cast<int>(feedback);
    names.add(
        "measure_tiles", kernels.passes[pass].measure[type][number],
        fmt::format(", {}, hipress::kernels::CudaFeedback({}), hipress::kernels::ValueType({})",
                    pass, number, type));
  };
  for (int pass = 0; pass < algorithm.cuda.pass_count; ++pass) {
    for (int type = 0; type < kValueTypes; ++type) {
      add_measure(pass, CudaFeedback::kNone, type);
      if (algorithm.error_feedback) add_measure(pass, CudaFeedback::kAtOnce, type);
      if (algorithm.deferrable) add_measure(pass, CudaFeedback::kDeferred, type);
    }
    names.add("conclude_slices", kernels.passes[pass].conclude, fmt::format(", {}", pass));
  }
  for (int type = 0; type < kValueTypes; ++type) {
    names.add("encode_tiles", kernels.encode[type],
              fmt::format(", hipress::kernels::ValueType({})", type));
  }
  names.add("put_back", kernels.put_back);
  if (algorithm.deferrable) names.add("settle_tiles", kernels.settle);
  names.add("decode_tiles", kernels.decode);
  return names.take();
}

/// The kernels that cuda_sparsifier_kernels() of cuda/sparsifier.cuh lists.
std::vector<NamedKernel> sparsifier_kernels(CudaSparsifierKernels& kernels) {
  KernelNames names;
  names.add("look_for_non_finite", kernels.look);
  names.add("sample_entries", kernels.sample);
  names.add("collect_entries", kernels.collect);
  names.add("count_digits", kernels.count_digits);
  names.add("conclude_digit", kernels.conclude_digit);
  names.add("tally_tiles", kernels.tally);
  names.add("place_blocks", kernels.place);
  names.add("write_entries", kernels.write);
  names.add("check_messages", kernels.check);
  names.add("decode_entries", kernels.decode);
  return names.take();
}

/// The kernels that cuda_block_kernels() of cuda/block_quantizer.cuh lists.
std::vector<NamedKernel> block_kernels(CudaBlockKernels& kernels) {
  KernelNames names;
  for (int type = 0; type < kValueTypes; ++type) {
    names.add("encode_blocks", kernels.encode[type],
              fmt::format(", hipress::kernels::ValueType({})", type));
  }
  names.add("conclude_blocks", kernels.conclude);
  names.add("decode_blocks", kernels.decode);
  return names.take();
}

std::vector<NamedKernel> kernels_of(const CompiledAlgorithm& algorithm, CudaKernels& kernels) {
  switch (algorithm.cuda.kind) {
    case CudaKind::kSparsifier:
      return sparsifier_kernels(kernels.sparsifier);
    case CudaKind::kBlocks:
      return block_kernels(kernels.blocks);
    default:
      return quantizer_kernels(algorithm, kernels.quantizer);
  }
}

/// Content of a cached file: the cubin, which tools can inspect, and one line per kernel name.
std::string as_file(const GpuCode& code) {
  std::string bytes = code.cubin;
  for (const std::string& name : code.names) bytes += "\n" + name;
  return bytes;
}

/// Parses a cached file; empty unless it has `count` names.
std::optional<GpuCode> from_file(std::string bytes, std::size_t count) {
  GpuCode code;
  code.names.resize(count);
  for (std::size_t i = count; i-- > 0;) {
    const std::size_t end = bytes.rfind('\n');
    if (end == std::string::npos || end + 1 == bytes.size()) return std::nullopt;
    code.names[i] = bytes.substr(end + 1);
    bytes.resize(end);
  }
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    return std::nullopt;
  code.cubin = std::move(bytes);
  return code;
}

void check(cudaError_t status, const std::string& path, const char* what) {
  if (status == cudaSuccess) return;
  throw io::RunError(fmt::format("{}: {}: {}", path, what, cudaGetErrorString(status)));
}

/// Compute capability of the current GPU: 90 for 9.0.
int capability_of_device(const std::string& path) {
  int device = 0, major = 0, minor = 0;
  const char* const what = "there is no GPU to compile it for; use the CPU";
  check(cudaGetDevice(&device), path, what);
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), path, what);
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), path, what);
  return 10 * major + minor;
}

/// Throws io::RunError if this build cannot load machine code: that needs CUDA 12.8, the rest of
/// the build 12.4.
void require_loading([[maybe_unused]] const std::string& path) {
#if CUDART_VERSION < 12080
  throw io::RunError(
      fmt::format("{}: this build cannot load programs onto a GPU; build with CUDA 12.8 or later, "
                  "or use the CPU",
                  path));
#endif
}

/// Loads the machine code, which is never unloaded, and looks up its kernels.
CudaKernels load(const UserProgram& program, [[maybe_unused]] const GpuCode& code) {
  CudaKernels kernels;
  const CudaShape& shape = program.algorithm->cuda;
  kernels.kind = shape.kind;
  kernels.quantizer.pass_count = shape.pass_count;
  kernels.quantizer.codes_after = shape.codes_after;
  kernels.quantizer.slice_result_bytes = shape.slice_result_bytes;
  for (int pass = 0; pass < shape.pass_count; ++pass) {
    kernels.quantizer.passes[pass].tile_result_bytes = shape.tile_result_bytes;
  }
#if CUDART_VERSION >= 12080
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, code.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        program.path, "loading the compiled kernels");
  std::size_t i = 0;
  for (const NamedKernel& named : kernels_of(*program.algorithm, kernels)) {
    cudaKernel_t kernel = nullptr;
    check(cudaLibraryGetKernel(&kernel, library, code.names[i++].c_str()), program.path,
          "finding a compiled kernel");
    *named.handle = reinterpret_cast<const void*>(kernel);  // the form that cudaLaunchKernel takes
  }
#endif
  return kernels;
}

}  // namespace

GpuCode gpu_code(const Nvrtc& nvrtc, const UserProgram& program, int capability) {
  if (program.algorithm->cuda.pass_count > kMaxCudaPasses) {
    throw io::RunError(fmt::format(
        "{}: it measures a slice in {} passes, and a GPU takes at most {}; let fewer reductions "
        "depend on each other, or use the CPU",
        program.path, program.algorithm->cuda.pass_count, kMaxCudaPasses));
  }
  const int architecture = nvrtc.architecture_for(capability);
  CudaKernels places;
  std::vector<std::string> names;
  for (NamedKernel& kernel : kernels_of(*program.algorithm, places)) {
    names.push_back(std::move(kernel.name));
  }
  std::vector<std::string> inputs = Nvrtc::flags(architecture);
  inputs.insert(inputs.end(), names.begin(), names.end());
  inputs.push_back(nvrtc.version());
  inputs.push_back(program.code);
  const std::string key = program_key(inputs);
  constexpr const char* kEnding = ".cubin";
  const ProgramCache cache;
  if (std::optional<std::string> cached = cache.find(key, kEnding)) {
    if (std::optional<GpuCode> code = from_file(std::move(*cached), names.size())) {
      return std::move(*code);
    }
  }
  GpuCode code = nvrtc.compile(program.path, program.code, names, architecture);
  cache.keep(key, kEnding, as_file(code));
  return code;
}

const CudaKernels& load_kernels(const UserProgram& program) {
  require_loading(program.path);
  static std::mutex mutex;
  static std::map<std::pair<const UserProgram*, int>, CudaKernels> loaded;
  const int capability = capability_of_device(program.path);
  const std::lock_guard lock(mutex);
  const auto known = loaded.find({&program, capability});
  if (known != loaded.end()) return known->second;
  static const Nvrtc nvrtc;
  const CudaKernels kernels = load(program, gpu_code(nvrtc, program, capability));
  return loaded.emplace(std::pair(&program, capability), kernels).first->second;
}

}  // namespace hipress::kernels
