#include "io/error.hpp"
#include "runtime/device.hpp"

#ifdef HIPRESS_HAVE_CUDA

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/merge.hpp"
#include "runtime/cublas.hpp"
#include "runtime/cuda_computation.hpp"

namespace hipress::runtime {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw io::RunError(fmt::format("GPU: {}: {}", what, cudaGetErrorString(status)));
  }
}

void CUDART_CB call_and_forget(void* function) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(function));
  (*owned)();
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {
    use();
    // Keep freed codec memory in the pool, so that only the first iteration asks the driver for it.
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, ordinal_), "finding its pool of memory");
    std::uint64_t all = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
          "keeping temporary memory");
    // Without this, the driver may reuse memory that another stream is about to free, and make one
    // stream wait for the other.
    int wait_for_others = 0;
    check(
        cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &wait_for_others),
        "keeping streams apart");
    int least = 0, most = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &most), "asking for priorities");
    for (std::size_t s = 0; s < kStreams; ++s) {
      // Prioritise messages over kernels: a transfer needs few of the GPU's units, but soon.
      const auto stream = static_cast<Stream>(s);
      const bool moves = stream == Stream::kOutbound || stream == Stream::kInbound;
      cudaStream_t made = nullptr;
      check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, moves ? most : least),
            "making a stream");
      streams_.push_back(made);
    }
  }

  ~CudaDevice() override {
    drain();
    for (auto& cublas : cublas_) cublas.reset();  // destroyed before its stream
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (void* const memory : device_memory_) cudaFree(memory);
    for (void* const memory : pinned_memory_) cudaFreeHost(memory);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "asking for its name");
    return properties.name;
  }

  std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) override {
    use();
    return kernels::make_codec(algorithm, kernels::Device::kCuda);
  }

  Memory memory() override {
    use();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for its free memory");
    return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
  }

  std::byte* allocate(std::int64_t bytes) override {
    use();
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)),
          fmt::format("allocating {} bytes of its memory", bytes).c_str());
    device_memory_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  std::byte* allocate_pinned(std::int64_t bytes) override {
    use();
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocPortable),
          fmt::format("allocating {} bytes of pinned host memory", bytes).c_str());
    pinned_memory_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  void reserve_temporary(std::int64_t bytes, std::span<const Stream> streams) override {
    if (bytes <= 0) return;
    use();
    std::vector<void*> taken;
    cudaError_t status = cudaSuccess;
    for (std::size_t i = 0; i < streams.size() && status == cudaSuccess; ++i) {
      void* memory = nullptr;
      status = cudaMallocAsync(&memory, static_cast<std::size_t>(bytes), on(streams[i]));
      if (status == cudaSuccess) taken.push_back(memory);
    }
    // Free only after all allocations: the pool could give one stream's memory to the next.
    for (std::size_t i = 0; i < taken.size(); ++i) {
      check(cudaFreeAsync(taken[i], on(streams[i])), "keeping temporary memory");
    }
    check(status, fmt::format("allocating {} bytes of temporary memory for each of {} streams",
                              bytes, streams.size())
                      .c_str());
  }

  void* handle(Stream stream) override {
    use();  // users of the handle work on the current GPU
    return on(stream);
  }

  void copy(void* to, const void* from, std::int64_t bytes, Stream stream) override {
    if (bytes <= 0) return;
    use();
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, on(stream)),
          "copying");
  }

  void clear(void* memory, std::int64_t bytes, Stream stream) override {
    if (bytes <= 0) return;
    use();
    check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), on(stream)), "clearing");
  }

  void merge(const float* y, std::int64_t elements, float* x, float own_divisor, float sum_divisor,
             Stream stream) override {
    use();
    kernels::merge_on_gpu(y, elements, x, own_divisor, sum_divisor, on(stream));
  }

  void compute(models::ComputeClass what, const float* a, const float* b, float* c, std::int64_t n,
               Stream stream) override {
    use();
    if (what == models::ComputeClass::kGemm && multiplies(a, b, c, n, stream)) return;
    check(compute_on_gpu(what, a, b, c, n, on(stream)), "launching computation");
  }

  void call(std::function<void()> function, Stream stream) override {
    use();
    auto owned = std::make_unique<std::function<void()>>(std::move(function));
    check(cudaLaunchHostFunc(on(stream), call_and_forget, owned.get()), "calling the host");
    static_cast<void>(owned.release());
  }

  void drain() noexcept override {
    if (cudaSetDevice(ordinal_) != cudaSuccess) return;
    for (const cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
  }

  Event make_event() override {
    use();
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "making an event");
    events_.push_back(event);
    return static_cast<Event>(events_.size() - 1);
  }

  void record(Event event, Stream stream) override {
    use();
    check(cudaEventRecord(events_[event], on(stream)), "recording an event");
  }

  void wait(Event event, Stream stream) override {
    use();
    check(cudaStreamWaitEvent(on(stream), events_[event], 0), "waiting for an event");
  }

  void wait_foreign(void* event, Stream stream) override {
    use();
    check(cudaStreamWaitEvent(on(stream), static_cast<cudaEvent_t>(event), 0),
          "waiting for another program's event");
  }

  bool done(Event event) override {
    use();
    const cudaError_t status = cudaEventQuery(events_[event]);
    if (status == cudaErrorNotReady) return false;
    check(status, "running what was enqueued");
    return true;
  }

  double seconds_between(Event from, Event to) override {
    use();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]), "timing");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  /// Selects this GPU: CUDA calls refer to the thread's current one.
  void use() { check(cudaSetDevice(ordinal_), "choosing it"); }
  /// Multiplies with cuBLAS; false if it cannot. Each stream has its own handle with its own
  /// workspace.
  bool multiplies(const float* a, const float* b, float* c, std::int64_t n, Stream stream) {
    auto& cublas = cublas_[static_cast<std::size_t>(stream)];
    if (!cublas) cublas = make_cublas(cublas_libraries());
    return *cublas && (*cublas)->multiply(a, b, c, n, on(stream));
  }
  cudaStream_t on(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }

  const int ordinal_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::array<std::optional<std::unique_ptr<Cublas>>, kStreams> cublas_;  // null: no cuBLAS
  std::vector<void*> device_memory_, pinned_memory_;
};

}  // namespace

int cuda_devices() {
  int count = 0;  // unchanged on failure
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  const int count = cuda_devices();
  if (count == 0) {
    int ignored = 0;
    throw io::InputError(fmt::format("no GPU can be used on this machine ({}); use `device` cpu",
                                     cudaGetErrorString(cudaGetDeviceCount(&ignored))));
  }
  if (ordinal < 0 || ordinal >= count) {
    throw io::InputError(
        fmt::format("there is no GPU {}: this process sees {}, counted from 0", ordinal, count));
  }
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace hipress::runtime

#else

namespace hipress::runtime {

int cuda_devices() { return 0; }

std::unique_ptr<Device> make_cuda_device(int /*ordinal*/) {
  throw io::InputError(
      "this build has no CUDA back end: configure with -DHIPRESS_CUDA=ON, or use `device` cpu");
}

}  // namespace hipress::runtime

#endif
