#include "kernels/user/nvrtc.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nvrtc.h>

#include <algorithm>
#include <filesystem>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/user/program_cache.hpp"

namespace hipress::kernels {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvrtc::Functions {
  decltype(&nvrtcAddNameExpression) add_name;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcGetCUBIN) cubin;
  decltype(&nvrtcGetCUBINSize) cubin_size;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcGetLoweredName) lowered_name;
  decltype(&nvrtcGetNumSupportedArchs) architecture_count;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetSupportedArchs) architectures;
  decltype(&nvrtcVersion) version;

  /// Looks the functions up in a library; false if one is missing.
  bool take(void* library) {
    return find(library, "nvrtcAddNameExpression", add_name) &&
           find(library, "nvrtcCompileProgram", compile) &&
           find(library, "nvrtcCreateProgram", create) &&
           find(library, "nvrtcDestroyProgram", destroy) && find(library, "nvrtcGetCUBIN", cubin) &&
           find(library, "nvrtcGetCUBINSize", cubin_size) &&
           find(library, "nvrtcGetErrorString", error_string) &&
           find(library, "nvrtcGetLoweredName", lowered_name) &&
           find(library, "nvrtcGetNumSupportedArchs", architecture_count) &&
           find(library, "nvrtcGetProgramLog", log) &&
           find(library, "nvrtcGetProgramLogSize", log_size) &&
           find(library, "nvrtcGetSupportedArchs", architectures) &&
           find(library, "nvrtcVersion", version);
  }

  void check(nvrtcResult result, const std::string& path, const char* what) const {
    if (result == NVRTC_SUCCESS) return;
    throw io::RunError(fmt::format("{}: NVRTC: {}: {}", path, what, error_string(result)));
  }

  std::string log_of(nvrtcProgram program) const {
    std::size_t size = 0;
    if (log_size(program, &size) != NVRTC_SUCCESS || size == 0) return "";
    std::string text(size, '\0');
    if (log(program, text.data()) != NVRTC_SUCCESS) return "";
    return text.substr(0, text.find('\0'));
  }
};

namespace {

/// Standard headers that nvrtc_std.hpp replaces.
constexpr const char* kStandardHeaders[] = {"cstddef", "cstdint", "type_traits", "utility"};

/// Owner of an NVRTC program.
struct Program {
  decltype(&nvrtcDestroyProgram) destroy;
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle != nullptr) destroy(&handle);
  }
};

}  // namespace

std::vector<std::string> nvrtc_libraries() {
  // The version of this build's runtime comes first: the driver accepts its code.
  std::vector<std::string> names = {fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000)};
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    if (name != names[0]) names.emplace_back(name);
  }
  std::vector<std::string> places;
  for (const std::string& toolkit : io::cuda_toolkits()) {
    for (const char* folder : {"/lib64/", "/lib/"}) places.push_back(toolkit + folder);
  }
  for (const char* place : {"", HIPRESS_CUDA_LIBRARIES "/", "/usr/local/cuda/lib64/"}) {
    places.emplace_back(place);
  }
  std::vector<std::string> libraries;
  for (const std::string& place : places) {
    for (const std::string& name : names) libraries.push_back(place + name);
  }
  return libraries;
}

Nvrtc::Nvrtc(const std::vector<std::string>& libraries) : functions_(new Functions) {
  std::string reason;
  for (const std::string& file : libraries) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && functions_->take(library)) {
      // Outside the linker's search path, NVRTC finds its builtins library only if it is loaded
      // already.
      const std::filesystem::path folder = std::filesystem::path(file).parent_path();
      if (!folder.empty()) {
        dlopen((folder / ("libnvrtc-builtins.so." + version())).c_str(), RTLD_NOW | RTLD_LOCAL);
      }
      return;
    }
    const char* const error = dlerror();  // error of dlopen() or dlsym()
    if (reason.empty() && error != nullptr) reason = error;
    if (library != nullptr) dlclose(library);
  }
  throw io::RunError(
      fmt::format("there is no NVRTC to compile for a GPU with ({}); install it (NVIDIA's package "
                  "cuda-nvrtc-{}-{}) or name the folder of a CUDA toolkit in CUDA_HOME",
                  reason, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
}

Nvrtc::~Nvrtc() = default;

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions_->check(functions_->version(&major, &minor), "NVRTC", "asking for its version");
  return fmt::format("{}.{}", major, minor);
}

int Nvrtc::architecture_for(int capability) const {
  int count = 0;
  functions_->check(functions_->architecture_count(&count), "NVRTC", "listing architectures");
  std::vector<int> known(static_cast<std::size_t>(count));
  functions_->check(functions_->architectures(known.data()), "NVRTC", "listing architectures");
  int best = 0;
  for (const int architecture : known) {
    const bool runs = architecture / 10 == capability / 10 && architecture <= capability;
    if (runs) best = std::max(best, architecture);
  }
  if (best != 0) return best;
  throw io::RunError(
      fmt::format("NVRTC {} cannot compile for a GPU of compute capability {}.{}, only for {}; "
                  "install the NVRTC of another CUDA version and name its folder in CUDA_HOME",
                  version(), capability / 10, capability % 10, fmt::join(known, ", ")));
}

std::vector<std::string> Nvrtc::flags(int architecture) {
  // The flags that nvcc gets for the built-in algorithms. The working directory is not searched for
  // headers.
  return {"-std=c++20",          "-default-device",
          "--fmad=false",        "--disable-warnings",
          "--no-source-include", fmt::format("--gpu-architecture=sm_{}", architecture)};
}

GpuCode Nvrtc::compile(const std::string& path, const std::string& code,
                       const std::vector<std::string>& kernels, int architecture) const {
  const std::string root = include_root();
  const std::string standard = io::read_file(root + "/kernels/user/nvrtc_std.hpp");
  const std::vector<const char*> headers(std::size(kStandardHeaders), standard.c_str());
  std::vector<std::string> words = flags(architecture);
  words.push_back("-I" + root);
  std::vector<const char*> options;
  for (const std::string& word : words) options.push_back(word.c_str());

  const Functions& f = *functions_;
  Program program{f.destroy};
  f.check(f.create(&program.handle, code.c_str(), "program.cu", static_cast<int>(headers.size()),
                   headers.data(), kStandardHeaders),
          path, "making a program");
  for (const std::string& kernel : kernels) {
    f.check(f.add_name(program.handle, kernel.c_str()), path, "naming a kernel");
  }
  const nvrtcResult result =
      f.compile(program.handle, static_cast<int>(options.size()), options.data());
  if (result != NVRTC_SUCCESS) {
    throw io::RunError(fmt::format("{}: NVRTC {} failed on the generated code ({}):\n{}", path,
                                   version(), f.error_string(result),
                                   f.log_of(program.handle).substr(0, 2000)));
  }
  GpuCode made;
  std::size_t size = 0;
  f.check(f.cubin_size(program.handle, &size), path, "taking the machine code");
  made.cubin.resize(size);
  f.check(f.cubin(program.handle, made.cubin.data()), path, "taking the machine code");
  for (const std::string& kernel : kernels) {
    const char* name = nullptr;
    f.check(f.lowered_name(program.handle, kernel.c_str(), &name), path, "finding a kernel");
    made.names.emplace_back(name);
  }
  return made;
}

}  // namespace hipress::kernels
