#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "tests/kernels/emulation/grid.hpp"

/// Emulation of the part of the CUDA runtime that the launchers use. A call returns when its work
/// is done, on any stream. A kernel's fault is a launch failure; its text describes the fault.

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
using cudaStream_t = struct CUstream_st*;

namespace hipress::kernels::emulation {

/// Calls a kernel with arguments in the form that cudaLaunchKernel takes.
using Invoke = void (*)(const void* kernel, void** arguments);

/// Function that calls the kernel, by kernel handle: a handle does not tell the kernel's type.
inline std::map<const void*, Invoke>& kernels_by_handle() {
  static std::map<const void*, Invoke> kernels;
  return kernels;
}

template <class... Parameters>
void invoke(const void* kernel, void** arguments) {
  [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel))(
        *static_cast<std::remove_cv_t<Parameters>*>(arguments[kI])...);
  }
  (std::index_sequence_for<Parameters...>());
}

/// Handle of a kernel for cudaLaunchKernel. Production code gets it through kernels/cuda/batch.hpp.
template <class... Parameters>
const void* handle_of(void (*kernel)(Parameters...)) {
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "kernel parameters may be 4 KiB");
  static std::mutex mutex;
  const auto* handle = reinterpret_cast<const void*>(kernel);
  const std::lock_guard lock(mutex);
  kernels_by_handle()[handle] = invoke<Parameters...>;
  return handle;
}

/// Status of the last error, which cudaGetLastError() resets, and its text, which stays.
struct LastError {
  cudaError_t status = cudaSuccess;
  std::string text;
};
inline LastError last_error;
inline int launches = 0;

inline cudaError_t report(cudaError_t status, const std::string& text) {
  last_error = {status, text};
  return status;
}

}  // namespace hipress::kernels::emulation

// ---- errors ----

inline const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : hipress::kernels::emulation::last_error.text.c_str();
}
inline cudaError_t cudaPeekAtLastError() { return hipress::kernels::emulation::last_error.status; }
inline cudaError_t cudaGetLastError() {
  return std::exchange(hipress::kernels::emulation::last_error.status, cudaSuccess);
}
inline cudaError_t cudaDeviceSynchronize() { return cudaGetLastError(); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaGetLastError(); }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

// ---- memory ----

inline cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  namespace emulation = hipress::kernels::emulation;
  *data = emulation::DeviceMemory::instance().allocate(bytes);
  if (*data == nullptr) return emulation::report(cudaErrorMemoryAllocation, "out of memory");
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** data, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(data), bytes);
}
inline cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(data, bytes);
}
inline cudaError_t cudaFree(void* data) {
  namespace emulation = hipress::kernels::emulation;
  if (data == nullptr || emulation::DeviceMemory::instance().free(data)) return cudaSuccess;
  return emulation::report(cudaErrorInvalidValue, "freed what was not allocated");
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cudaFree(data); }

inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  namespace emulation = hipress::kernels::emulation;
  const auto& memory = emulation::DeviceMemory::instance();
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if ((from_device && !memory.holds(from, bytes)) || (to_device && !memory.holds(to, bytes))) {
    return emulation::report(cudaErrorInvalidValue, "copied what is not device memory");
  }
  const emulation::DeviceMemory::Access access;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  namespace emulation = hipress::kernels::emulation;
  if (!emulation::DeviceMemory::instance().holds(data, bytes)) {
    return emulation::report(cudaErrorInvalidValue, "set what is not device memory");
  }
  const emulation::DeviceMemory::Access access;
  std::memset(data, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes,
                                   cudaStream_t = nullptr) {
  return cudaMemset(data, value, bytes);
}

// ---- launches ----

inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t) {
  namespace emulation = hipress::kernels::emulation;
  const auto found = emulation::kernels_by_handle().find(kernel);
  if (found == emulation::kernels_by_handle().end()) {
    return emulation::report(cudaErrorInvalidDeviceFunction, "launched what is no kernel's handle");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y * block.z == 0 ||
      block.x * block.y * block.z > 1024 || shared_bytes != 0) {
    return emulation::report(cudaErrorInvalidConfiguration,
                             "no blocks, no threads or more than 1024, or dynamic shared memory");
  }
  ++emulation::launches;
  struct Call {
    emulation::Invoke invoke;
    const void* kernel;
    void** arguments;
  } call{found->second, kernel, arguments};
  const auto body = [](void* argument) {
    const auto& made = *static_cast<const Call*>(argument);
    made.invoke(made.kernel, made.arguments);
  };
  std::string wrong = emulation::Grid::instance().run(grid, block, body, &call);
  if (wrong.empty()) wrong = emulation::DeviceMemory::instance().damage();
  return wrong.empty() ? cudaSuccess : emulation::report(cudaErrorLaunchFailure, wrong);
}
