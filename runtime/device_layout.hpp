#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program.hpp"

namespace hipress::runtime {

/// Transport of a device's messages.
enum class DeviceTransport : std::uint8_t {
  kPinned,  ///< the endpoint's transport, through pinned host memory
  kNccl,    ///< NCCL, from device to device
};

/// Pinned memory of a message that leaves or arrives.
struct Staging {
  std::int64_t offset = 0;  ///< offset in the pinned arena
  std::int64_t bytes = 0;
  bool comes_in = false;  ///< true: a Recv fills it
};

/// Memory layout of a rank: one arena on its device and one in pinned memory. It is known before
/// the first iteration, so insufficient memory is reported then. It excludes NCCL's memory, because
/// NCCL connects before the device's free memory is queried; what NCCL allocates with the first
/// message between two ranks cannot be known in advance.
struct DeviceLayout {
  std::vector<std::int64_t> units;    ///< offset per unit; -1: no members
  std::int64_t messages = 0;          ///< offset of Program::messages()' arena
  std::int64_t lengths = -1;          ///< offset of a std::int64_t per message; -1: not needed
  std::int64_t pinned_lengths = -1;   ///< offset of the same in pinned memory
  std::vector<std::int64_t> states;   ///< per task: offset of its slice's residual; -1: no residual
  std::vector<std::int64_t> strides;  ///< per task: bytes between arrays of its state
  std::vector<std::int64_t> deferred;  ///< per task: offset of its kernels::Deferred; -1: not used
  std::vector<std::uint32_t> staging_of;  ///< per task: index of the staging of a Send, Recv or
                                          ///< AllReduce; kNoIndex for other tasks
  std::vector<Staging> staging;

  // Sizes in bytes; those on the device add up to device_bytes().
  std::int64_t unit_bytes = 0, message_bytes = 0, state_bytes = 0;
  std::int64_t state_begin = 0;      ///< start of states and deferred: one piece, initially zero
  std::int64_t temporary_bytes = 0;  ///< upper bound for the codecs of one of the two codec streams
  std::int64_t pinned_bytes = 0;
  std::int64_t arena_bytes() const { return unit_bytes + message_bytes + state_bytes; }
  std::int64_t device_bytes() const { return arena_bytes() + 2 * temporary_bytes; }
};

DeviceLayout make_device_layout(const Program& program, DeviceTransport transport);

/// Throws io::RunError, with the required and the available memory, if the layout does not fit.
void require_memory(const DeviceLayout& layout, std::int64_t free_bytes, std::int64_t total_bytes,
                    std::uint32_t rank);

}  // namespace hipress::runtime
