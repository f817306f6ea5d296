#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/codec/codec.hpp"
#include "models/mix.hpp"

namespace hipress::runtime {

/// Queues of a device. Work on one stream runs in order; only events order work on different
/// streams.
enum class Stream : std::uint8_t {
  kOwnCodec,      ///< encodes data that depends on no other rank, so other ranks never block it
  kArrivalCodec,  ///< decodes arrived messages
  kOutbound,      ///< moves messages out; in both directions if a library moves them
  kInbound,       ///< moves messages in
};
inline constexpr std::size_t kStreams = 4;

/// A point in a stream: an index assigned by its device.
using Event = std::uint32_t;

/// One rank's view of a GPU. This interface has all CUDA functions that the runtime needs, so that
/// the runtime can be tested without a GPU. Several ranks of one process may share a GPU. Enqueuing
/// does not wait. Concurrent calls must be queries or concern different streams. All calls throw
/// io::RunError with the device's error text if the device has failed.
class Device {
 public:
  /// Drains all streams and frees all allocations.
  virtual ~Device() = default;

  virtual std::string name() = 0;  ///< "NVIDIA H100 80GB HBM3"
  /// Codec of a plan's algorithm for this device.
  virtual std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) = 0;

  struct Memory {
    std::int64_t free = 0, total = 0;  ///< bytes
  };
  virtual Memory memory() = 0;
  /// Allocates device memory, 256-byte aligned; freed with the device.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  /// Allocates pinned host memory, for asynchronous copies; freed with the device.
  virtual std::byte* allocate_pinned(std::int64_t bytes) = 0;
  /// Reserves temporary memory for codecs, `bytes` for each of the streams at the same time, so
  /// that the driver need not be asked later.
  virtual void reserve_temporary(std::int64_t bytes, std::span<const Stream> streams) = 0;

  /// Native handle of a stream, for kernels::Codec and the communicator.
  virtual void* handle(Stream stream) = 0;
  /// Copies between any two places, on the device or on the host.
  virtual void copy(void* to, const void* from, std::int64_t bytes, Stream stream) = 0;
  virtual void clear(void* memory, std::int64_t bytes, Stream stream) = 0;
  /// Enqueues a merge in fp32: x = (x / own_divisor + y) / sum_divisor; y may be null (zeros).
  virtual void merge(const float* y, std::int64_t elements, float* x, float own_divisor,
                     float sum_divisor, Stream stream) = 0;
  /// Enqueues computation of a class on row-major square matrices of n rows (a multiple of 64): the
  /// load beside which codecs and transfers are measured. compute_on_host() (computation.hpp)
  /// defines c.
  virtual void compute(models::ComputeClass what, const float* a, const float* b, float* c,
                       std::int64_t n, Stream stream) = 0;
  /// Calls `function` from the stream. It must not use the device, nor wait for work on the device:
  /// later work of the stream waits for it.
  virtual void call(std::function<void()> function, Stream stream) = 0;

  /// Waits for all enqueued work.
  virtual void drain() noexcept = 0;

  virtual Event make_event() = 0;
  virtual void record(Event event, Stream stream) = 0;
  /// Makes later work on `stream` wait for the event's last record.
  virtual void wait(Event event, Stream stream) = 0;
  virtual bool done(Event event) = 0;
  /// Like wait(), for a foreign event: a cudaEvent_t of this process.
  virtual void wait_foreign(void* event, Stream stream) = 0;
  /// Time between two completed events.
  virtual double seconds_between(Event from, Event to) = 0;
};

/// Opens the GPU with that CUDA ordinal. Throws io::InputError if it does not exist, with a list of
/// the available GPUs, or if this build has no CUDA.
std::unique_ptr<Device> make_cuda_device(int ordinal);

/// Number of GPUs that this process sees; 0 without a driver or in a build without CUDA.
int cuda_devices();

}  // namespace hipress::runtime
