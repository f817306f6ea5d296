#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "casync/task_graph.hpp"
#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"
#include "runtime/device_memory.hpp"
#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/stream_schedule.hpp"

namespace hipress::runtime {

/// One rank's program on a device: its memory, the schedule of its streams, and the bodies of its
/// tasks. Used by the issuing thread; the runtime's lock guards set_length().
class DeviceWork {
 public:
  /// `seed` is that of the codecs' random draws. Call memory.allocate() before any other function.
  DeviceWork(const Program& program, Device& device, DeviceTransport transport, std::uint64_t seed);

  /// Sets the iteration, on which the codecs' random draws depend. All streams must be idle.
  void begin(std::uint64_t iteration) { iteration_ = iteration; }

  /// Enqueues an Encode, a Decode or a Merge, with its batch.
  void enqueue_codec(std::uint32_t index);
  /// Enqueues the cast of an AllReduce before the sum (kEncode) or after it (kDecode), if it casts.
  void run_cast(const LocalTask& local, casync::Kind kind, Stream stream) const;

  /// Sets the length of a message that arrived, in bytes.
  void set_length(std::uint32_t message, std::int64_t bytes) { message_bytes_[message] = bytes; }
  /// Bytes that a Send, Recv or AllReduce moves: the arrived length if known, else the upper bound.
  std::int64_t message_bytes(const LocalTask& local) const;
  /// True if the task's message was encoded here, so that only the device knows its length.
  bool varies(const LocalTask& local) const;

  const Program& program;
  Device& device;
  DeviceMemory memory;
  StreamSchedule schedule;

 private:
  void run_codec(std::span<const BoundTask> batch, Stream stream) const;
  std::vector<BoundTask> works(std::span<const std::uint32_t> batch) const;
  Operands operands(std::uint32_t index) const;
  std::span<std::byte> used(std::uint32_t message) const;

  const std::uint64_t seed_;
  std::uint64_t iteration_ = 0;
  std::vector<std::shared_ptr<const kernels::Codec>> codecs_;  ///< per algorithm of the plan
  std::vector<std::int64_t> message_bytes_;  ///< per message: length if it arrived, else capacity
  std::vector<bool> varies_;                 ///< per message, see varies()
};

}  // namespace hipress::runtime
