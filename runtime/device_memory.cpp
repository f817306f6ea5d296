#include "runtime/device_memory.hpp"

#include <algorithm>
#include <array>

namespace hipress::runtime {

DeviceMemory::DeviceMemory(const Program& program, Device& device, DeviceTransport transport)
    : program_(program), device_(device), layout_(make_device_layout(program, transport)) {}

void DeviceMemory::allocate() {
  const Device::Memory memory = device_.memory();
  require_memory(layout_, memory.free, memory.total, program_.node());
  arena_ = device_.allocate(std::max<std::int64_t>(1, layout_.arena_bytes()));
  if (layout_.pinned_bytes > 0) pinned_ = device_.allocate_pinned(layout_.pinned_bytes);
  device_.clear(arena_ + layout_.state_begin, layout_.state_bytes, Stream::kOwnCodec);
  constexpr std::array kCodecs{Stream::kOwnCodec, Stream::kArrivalCodec};
  device_.reserve_temporary(layout_.temporary_bytes, kCodecs);
}

std::span<float> DeviceMemory::slice(const LocalTask& local) const {
  auto* const values = reinterpret_cast<float*>(unit(local.task.gradient));
  return {values + local.slice.begin, static_cast<std::size_t>(local.slice.elements)};
}

std::span<std::byte> DeviceMemory::buffer(std::uint32_t message) const {
  const MessageBuffer& place = program_.messages()[message];
  return {arena_ + layout_.messages + place.offset, static_cast<std::size_t>(place.capacity)};
}

std::span<std::byte> DeviceMemory::payload(const LocalTask& local) const {
  if (local.message != kNoIndex) return buffer(local.message);
  return std::as_writable_bytes(slice(local));
}

std::span<std::byte> DeviceMemory::staging(std::uint32_t index) const {
  const Staging& place = layout_.staging[layout_.staging_of[index]];
  return {pinned_ + place.offset, static_cast<std::size_t>(place.bytes)};
}

std::int64_t* DeviceMemory::length(std::uint32_t message) const {
  if (layout_.lengths < 0) return nullptr;
  return reinterpret_cast<std::int64_t*>(arena_ + layout_.lengths) + message;
}

std::int64_t* DeviceMemory::pinned_length(std::uint32_t message) const {
  if (layout_.pinned_lengths < 0) return nullptr;
  return reinterpret_cast<std::int64_t*>(pinned_ + layout_.pinned_lengths) + message;
}

std::int64_t DeviceMemory::most_bytes(const LocalTask& local) const {
  return local.message == kNoIndex ? local.task.amount
                                   : program_.messages()[local.message].capacity;
}

kernels::State DeviceMemory::state(std::uint32_t index) const {
  kernels::State state;
  if (layout_.states[index] < 0) return state;
  state.data = reinterpret_cast<float*>(arena_ + layout_.states[index]);
  state.stride = layout_.strides[index] / static_cast<std::int64_t>(sizeof(float));
  state.deferred = reinterpret_cast<kernels::Deferred*>(arena_ + layout_.deferred[index]);
  return state;
}

void DeviceMemory::copy_in(std::span<const std::span<float>> units, Stream stream) const {
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (layout_.units[u] < 0) continue;
    device_.copy(unit(u), units[u].data(), static_cast<std::int64_t>(units[u].size_bytes()),
                 stream);
  }
}

void DeviceMemory::copy_out(std::span<const std::span<float>> units, Stream stream) const {
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (layout_.units[u] < 0) continue;
    device_.copy(units[u].data(), unit(u), static_cast<std::int64_t>(units[u].size_bytes()),
                 stream);
  }
}

}  // namespace hipress::runtime
