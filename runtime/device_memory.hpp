#pragma once

#include <cstdint>
#include <span>

#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"
#include "runtime/device_layout.hpp"
#include "runtime/program.hpp"

namespace hipress::runtime {

/// One rank's memory on a device and pinned on the host, as its layout says, and what of it each
/// task uses. Program and device must outlive it; the device frees the memory.
class DeviceMemory {
 public:
  /// Lays everything out; nothing is allocated yet.
  DeviceMemory(const Program& program, Device& device, DeviceTransport transport);

  /// Once, before anything below is asked for. States are zero then. io::RunError with the figures
  /// if the device has too little.
  void allocate();

  const DeviceLayout& layout() const { return layout_; }
  /// What a task changes: its part of a gradient, or of a bulk group, on the device.
  std::span<float> slice(const LocalTask& local) const;
  /// A message of Program::messages(), on the device.
  std::span<std::byte> buffer(std::uint32_t message) const;
  /// What a Send, Recv or AllReduce moves, on the device: a message, or the slice as it is.
  std::span<std::byte> payload(const LocalTask& local) const;
  /// Where the same passes through pinned memory; of tasks that have a place there.
  std::span<std::byte> staging(std::uint32_t index) const;
  /// The most bytes of what a Send, Recv or AllReduce moves, or an Encode makes.
  std::int64_t most_bytes(const LocalTask& local) const;
  /// Where the device says how long a message is that it encoded; null where none varies.
  std::int64_t* length(std::uint32_t message) const;
  /// The same in pinned memory.
  std::int64_t* pinned_length(std::uint32_t message) const;
  /// Residuals of an Encode; empty of algorithms without.
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
