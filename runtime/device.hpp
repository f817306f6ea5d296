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

/// Queues of a device. What is enqueued on one runs in its order; between two only events order.
enum class Stream : std::uint8_t {
  kOwnCodec,      ///< encodes what waits for no other rank, so it never stands behind what does
  kArrivalCodec,  ///< decodes what arrived
  kOutbound,      ///< moves messages out; all of them, where a library moves them both ways
  kInbound,       ///< moves messages in
};
inline constexpr std::size_t kStreams = 4;

/// A point in a stream; an index that its device gave out.
using Event = std::uint32_t;

/// One rank's view of a GPU: everything that the runtime asks of CUDA, so that the runtime's
/// decisions can be tested without a GPU. Several ranks of one process may share one. Enqueuing
/// does not wait. Calls from several threads at a time must be for different streams, or queries.
/// All calls throw io::RunError with the device's own words when the device has failed.
class Device {
 public:
  /// Drains, and frees what was allocated.
  virtual ~Device() = default;

  virtual std::string name() = 0;  ///< "NVIDIA H100 80GB HBM3"
  /// The codec of a plan's algorithm for this device.
  virtual std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) = 0;

  struct Memory {
    std::int64_t free = 0, total = 0;  ///< bytes
  };
  virtual Memory memory() = 0;
  /// 256-byte aligned, and as long-lived as the device.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  /// Host memory that the device copies from and to while the host goes on.
  virtual std::byte* allocate_pinned(std::int64_t bytes) = 0;
  /// Temporary memory that codecs on each of the streams will take, so much for each at the same
  /// time; it need not be asked of the driver then.
  virtual void reserve_temporary(std::int64_t bytes, std::span<const Stream> streams) = 0;

  /// As kernels::Codec and the communicator take it.
  virtual void* handle(Stream stream) = 0;
  /// Between any two places, on the device or not.
  virtual void copy(void* to, const void* from, std::int64_t bytes, Stream stream) = 0;
  virtual void clear(void* memory, std::int64_t bytes, Stream stream) = 0;
  /// x = (x / own_divisor + y) / sum_divisor, raw fp32; without y if it is null.
  virtual void merge(const float* y, std::int64_t elements, float* x, float own_divisor,
                     float sum_divisor, Stream stream) = 0;
  /// Work of that class on square matrices of n rows (a multiple of 64), row by row, beside which
  /// codecs and transfers are measured; compute_on_host() (computation.hpp) says what c becomes.
  virtual void compute(models::ComputeClass what, const float* a, const float* b, float* c,
                       std::int64_t n, Stream stream) = 0;
  /// Calls `function` when the stream gets there. It must not use the device, and wait only for
  /// what comes without it: what the stream holds behind waits too.
  virtual void call(std::function<void()> function, Stream stream) = 0;

  /// Waits for everything that was enqueued.
  virtual void drain() noexcept = 0;

  virtual Event make_event() = 0;
  virtual void record(Event event, Stream stream) = 0;
  /// What is enqueued on `stream` from now on waits for the event's last record.
  virtual void wait(Event event, Stream stream) = 0;
  virtual bool done(Event event) = 0;
  /// The same as wait(), for an event that is somebody else's: a cudaEvent_t of this process.
  virtual void wait_foreign(void* event, Stream stream) = 0;
  /// Between two events that are done.
  virtual double seconds_between(Event from, Event to) = 0;
};

/// The GPU with that number, as CUDA counts. io::InputError that says what there is instead, if
/// there is none, or this build has no CUDA.
std::unique_ptr<Device> make_cuda_device(int ordinal);

/// How many GPUs this process sees; 0 without a driver or in a build without CUDA.
int cuda_devices();

}  // namespace hipress::runtime
