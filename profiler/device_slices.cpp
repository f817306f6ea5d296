#include "profiler/device_slices.hpp"

#include <algorithm>
#include <vector>

#include "replay/inputs.hpp"

namespace hipress::profiler {

using runtime::Device;
using runtime::Stream;

namespace {

constexpr std::int64_t kSliceAlignment = 256;

std::int64_t slice_aligned(std::int64_t bytes) { return casync::round_up(bytes, kSliceAlignment); }

int states_of(const kernels::Codec& codec) {
  return codec.traits().error_feedback ? codec.traits().state_arrays : 0;
}

/// Bytes of one slice: two arrays of values, its states, its message, and a deferred update of
/// states (kernels::Deferred).
std::int64_t slice_bytes(const kernels::Codec& codec, std::int64_t elements) {
  return bytes_of(slice_aligned(elements)) * (2 + states_of(codec)) +
         slice_aligned(codec.encoded_bytes(elements)) + kSliceAlignment;
}

}  // namespace

DeviceSlices::DeviceSlices(Device& device, std::byte* arena, const kernels::Codec& codec,
                           std::int64_t elements, int count)
    : device_(device),
      arena_(arena),
      codec_(codec),
      elements_(elements),
      count_(count),
      states_(states_of(codec)),
      values_(bytes_of(slice_aligned(elements))),
      message_(slice_aligned(codec.encoded_bytes(elements))) {
  fill();
}

std::int64_t DeviceSlices::bytes(const kernels::Codec& codec, std::int64_t elements, int count) {
  return count * slice_bytes(codec, elements);
}

std::int64_t DeviceSlices::each() const { return slice_bytes(codec_, elements_); }

void DeviceSlices::encode(Stream stream) {
  std::byte* const slice = next();
  kernels::EncodeItem item{.values = slice,
                           .elements = elements_,
                           .state = {},
                           .message = message_of(slice),
                           .key = {.seed = 1, .step = step_++}};
  if (states_ > 0) {
    item.state = {.data = reinterpret_cast<float*>(slice + 2 * values_),
                  .stride = values_ / static_cast<std::int64_t>(sizeof(float)),
                  .deferred = reinterpret_cast<kernels::Deferred*>(message_of(slice) + message_)};
  }
  codec_.encode({&item, 1}, device_.handle(stream));
}

void DeviceSlices::decode(kernels::DecodeMode mode, Stream stream) {
  std::byte* const slice = next();
  const std::byte* const message = message_of(slice);
  const std::int64_t length = codec_.encoded_bytes(elements_);
  const kernels::DecodeItem item{.messages = {&message, 1},
                                 .message_bytes = {&length, 1},
                                 .elements = elements_,
                                 .values = slice + values_,
                                 .mode = mode};
  codec_.decode({&item, 1}, device_.handle(stream));
}

void DeviceSlices::merge(Stream stream) {
  std::byte* const slice = next();
  device_.merge(reinterpret_cast<const float*>(slice), elements_,
                reinterpret_cast<float*>(slice + values_), 1, 1, stream);
}

void DeviceSlices::fill() {
  constexpr Stream kStream = Stream::kOwnCodec;
  device_.clear(arena_, each() * count_, kStream);
  std::vector<float*> slices;
  for (int i = 0; i < count_; ++i) {
    slices.push_back(reinterpret_cast<float*>(arena_ + each() * i));
  }
  fill_with_gradient(device_, slices, elements_);
  for (int i = 0; i < count_; ++i) encode(kStream);
  device_.drain();
}

void fill_with_gradient(Device& device, std::span<float* const> slices, std::int64_t elements) {
  std::vector<float> some(static_cast<std::size_t>(std::min<std::int64_t>(elements, 1 << 20)));
  replay::fill_inputs({.seed = 1}, 0, some);
  const auto most = static_cast<std::int64_t>(some.size());
  for (float* const values : slices) {
    for (std::int64_t at = 0; at < elements; at += most) {
      const std::int64_t part = std::min(elements - at, most);
      device.copy(values + at, some.data(), bytes_of(part), Stream::kOwnCodec);
    }
  }
  device.drain();  // must end before `some` is destroyed
}

}  // namespace hipress::profiler
