#pragma once

#include <cstdint>
#include <span>

#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"
#include "runtime/device_layout.hpp"
#include "runtime/program.hpp"

namespace hipress::runtime {

/// One rank's memory, on a device and pinned on the host, and the part of it that each task uses.
/// Program and device must outlive it; the device frees the memory.
class DeviceMemory {
 public:
  /// Computes the layout; allocates nothing yet.
  DeviceMemory(const Program& program, Device& device, DeviceTransport transport);

  /// Allocates and zeroes the states. Call it once, before the functions below. Throws io::RunError
  /// with the figures if the device has too little memory.
  void allocate();

  const DeviceLayout& layout() const { return layout_; }
  /// Slice that a task changes on the device: its part of a gradient or of a bulk group.
  std::span<float> slice(const LocalTask& local) const;
  /// Buffer on the device of a message of Program::messages().
  std::span<std::byte> buffer(std::uint32_t message) const;
  /// Payload of a Send, Recv or AllReduce on the device: a message, or the raw slice.
  std::span<std::byte> payload(const LocalTask& local) const;
  /// Staging of a payload in pinned memory, by its index in the layout.
  std::span<std::byte> staging(std::uint32_t index) const;
  /// Upper bound in bytes of the payload of a Send, Recv or AllReduce, or of an Encode's message.
  std::int64_t most_bytes(const LocalTask& local) const;
  /// Device memory for an encoded message's length; null if no codec's messages vary in length.
  std::int64_t* length(std::uint32_t message) const;
  /// Copy of the length in pinned memory.
  std::int64_t* pinned_length(std::uint32_t message) const;
  /// Residuals of an Encode; empty for algorithms without state.
  kernels::State state(std::uint32_t index) const;

  /// Enqueues copies of all units from the host to the device, and back. One span per unit.
  void copy_in(std::span<const std::span<float>> units, Stream stream) const;
  void copy_out(std::span<const std::span<float>> units, Stream stream) const;

 private:
  std::byte* unit(std::size_t number) const { return arena_ + layout_.units[number]; }

  const Program& program_;
  Device& device_;
  DeviceLayout layout_;
  std::byte* arena_ = nullptr;
  std::byte* pinned_ = nullptr;
};

}  // namespace hipress::runtime
