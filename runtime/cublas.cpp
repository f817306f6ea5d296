#include "runtime/cublas.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "io/environment.hpp"

namespace hipress::runtime {
namespace {

/// Functions of cublas_v2.h that are used; 0 is success.
struct Functions {
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, cudaStream_t) = nullptr;
  int (*set_math_mode)(void*, int) = nullptr;
  int (*sgemm)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int) = nullptr;

  template <typename Function>
  static bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
  }
  bool take(void* library) {
    return find(library, "cublasCreate_v2", create) && find(library, "cublasDestroy_v2", destroy) &&
           find(library, "cublasSetStream_v2", set_stream) &&
           find(library, "cublasSetMathMode", set_math_mode) &&
           find(library, "cublasSgemm_v2", sgemm);
  }
};

class LoadedCublas : public Cublas {
 public:
  LoadedCublas(const Functions& functions, void* handle) : functions_(functions), handle_(handle) {
    constexpr int kTf32 = 3;  // CUBLAS_TF32_TENSOR_OP_MATH
    functions_.set_math_mode(handle_, kTf32);
  }
  ~LoadedCublas() override { functions_.destroy(handle_); }
  LoadedCublas(const LoadedCublas&) = delete;
  LoadedCublas& operator=(const LoadedCublas&) = delete;

  bool multiply(const float* a, const float* b, float* c, std::int64_t n,
                cudaStream_t stream) override {
    constexpr int kAsTheyAre = 0;  // CUBLAS_OP_N
    const float one = 1, zero = 0;
    const auto rows = static_cast<int>(n);
    // cuBLAS is column-major, so it computes cᵀ = bᵀ·aᵀ.
    return functions_.set_stream(handle_, stream) == 0 &&
           functions_.sgemm(handle_, kAsTheyAre, kAsTheyAre, rows, rows, rows, &one, b, rows, a,
                            rows, &zero, c, rows) == 0;
  }

 private:
  const Functions functions_;
  void* const handle_;
};

}  // namespace

std::vector<std::string> cublas_libraries() {
  std::vector<std::string> places = {""};
  for (const std::string& toolkit : io::cuda_toolkits()) {
    for (const char* folder : {"/lib64/", "/lib/"}) places.push_back(toolkit + folder);
  }
  places.emplace_back("/usr/local/cuda/lib64/");
  std::vector<std::string> libraries;
  for (const std::string& place : places) {
    libraries.push_back(fmt::format("{}libcublas.so.{}", place, CUDART_VERSION / 1000));
    libraries.push_back(place + "libcublas.so");
  }
  return libraries;
}

std::unique_ptr<Cublas> make_cublas(const std::vector<std::string>& libraries) {
  for (const std::string& file : libraries) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Functions functions;
    void* handle = nullptr;
    if (functions.take(library) && functions.create(&handle) == 0) {
      return std::make_unique<LoadedCublas>(functions, handle);
    }
    dlclose(library);
  }
  return nullptr;
}

}  // namespace hipress::runtime
