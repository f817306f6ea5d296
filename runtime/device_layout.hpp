#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program.hpp"

namespace hipress::runtime {

/// Who moves a device's messages.
enum class DeviceTransport : std::uint8_t {
  kPinned,  ///< the endpoint's transport, through pinned host memory
  kNccl,    ///< NCCL, from device to device
};

/// What leaves or arrives through pinned memory.
struct Staging {
  std::int64_t offset = 0;  ///< in the pinned arena
  std::int64_t bytes = 0;
  bool comes_in = false;  ///< a Recv fills it
};

/// Where everything lies that a rank keeps on its device (in one arena) and in pinned memory (in
/// another). Known before the first iteration, so that too little memory is an error then. Memory
/// of NCCL is not in it: NCCL connects before the device is asked what is free. What NCCL takes
/// with the first message between two ranks cannot be known in advance.
struct DeviceLayout {
  std::vector<std::int64_t> units;   ///< offset per unit; -1 of those without members
  std::int64_t messages = 0;         ///< offset of Program::messages()' arena
  std::int64_t lengths = -1;         ///< offset of a std::int64_t for each of these; -1: not needed
  std::int64_t pinned_lengths = -1;  ///< the same in pinned memory
  std::vector<std::int64_t> states;  ///< per task: offset of its slice's residual; -1: none
  std::vector<std::int64_t> strides;   ///< per task: bytes from one array of its state to the next
  std::vector<std::int64_t> deferred;  ///< per task: offset of its kernels::Deferred; -1: none
  std::vector<std::uint32_t> staging_of;  ///< per Send, Recv, AllReduce: index; kNoIndex
  std::vector<Staging> staging;

  // Bytes; those of the device add up to what is needed of it.
  std::int64_t unit_bytes = 0, message_bytes = 0, state_bytes = 0;
  std::int64_t state_begin = 0;      ///< states and deferred are zero at first: one piece
  std::int64_t temporary_bytes = 0;  ///< at most, of the codecs of one stream
  std::int64_t pinned_bytes = 0;
  std::int64_t arena_bytes() const { return unit_bytes + message_bytes + state_bytes; }
  std::int64_t device_bytes() const { return arena_bytes() + 2 * temporary_bytes; }
};

DeviceLayout make_device_layout(const Program& program, DeviceTransport transport);

/// io::RunError with what is needed, for what, and what there is, unless it fits.
void require_memory(const DeviceLayout& layout, std::int64_t free_bytes, std::int64_t total_bytes,
                    std::uint32_t rank);

}  // namespace hipress::runtime
