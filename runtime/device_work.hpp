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

/// One rank's program on a device: its memory, the schedule of its streams, and what tasks do
/// there. It is for the thread that issues; the runtime's lock guards set_length().
class DeviceWork {
 public:
  /// `seed` is of the codecs' random draws. Nothing is allocated until memory.allocate().
  DeviceWork(const Program& program, Device& device, DeviceTransport transport, std::uint64_t seed);

  /// Before an iteration, with all streams idle: what codecs draw depends on it.
  void begin(std::uint64_t iteration) { iteration_ = iteration; }

  /// Enqueues an Encode, a Decode or a Merge, with its batch.
  void enqueue_codec(std::uint32_t index);
  /// The casts of an AllReduce, if it has any: before it is summed (kEncode) and after (kDecode).
  void run_cast(const LocalTask& local, casync::Kind kind, Stream stream) const;

  /// Sets the length of a message that arrived, in bytes.
  void set_length(std::uint32_t message, std::int64_t bytes) { message_bytes_[message] = bytes; }
  /// How much a Send, Recv or AllReduce moves, as far as the host knows: what has arrived, else the
  /// most that there can be.
  std::int64_t message_bytes(const LocalTask& local) const;
  /// Whether the task's message was encoded here, and only the device knows its length.
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
  std::vector<std::int64_t> message_bytes_;  ///< per message; the bound is what decodes take, too
  std::vector<bool> varies_;                 ///< per message
};

}  // namespace hipress::runtime
