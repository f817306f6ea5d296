#include "profiler/sample.hpp"

#include <cstdint>
#include <vector>

namespace hipress::profiler {

double message_share(const kernels::Codec& codec, std::span<const float> values) {
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  const auto elements = static_cast<std::int64_t>(values.size());
  const std::int64_t most = codec.encoded_bytes(elements);
  std::vector<Line> message(static_cast<std::size_t>(most) / sizeof(Line) + 1);
  std::int64_t used = most;
  kernels::EncodeItem item;
  item.values = values.data();
  item.elements = elements;
  item.message = message[0].bytes;
  item.message_bytes = &used;
  codec.encode({&item, 1});
  return static_cast<double>(used) / static_cast<double>(most);
}

}  // namespace hipress::profiler
