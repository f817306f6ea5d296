// An algorithm outside of kernels/. It needs only this file, with the row at its end.
#include "tests/foreign/upper_half.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/frames/typed_values.hpp"
#include "kernels/registry/registry.hpp"

namespace hipress::tests {
namespace {

using kernels::DecodeItem;
using kernels::EncodeItem;

/// Keeps the upper 16 bits of every fp32 number. If the count is odd, two bytes of zeros follow.
class UpperHalf : public kernels::Codec {
 public:
  const kernels::CodecTraits& traits() const override { return traits_; }

  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return (elements + 1) / 2 * 4;
  }

  void encode(std::span<const EncodeItem> items, void* /*stream*/) const override {
    for (const EncodeItem& item : items) {
      const std::int64_t bytes = encoded_bytes(item.elements);
      if (item.elements % 2 != 0) std::memset(item.message + bytes - 2, 0, 2);
      for (std::int64_t i = 0; i < item.elements; ++i) {
        const float value = kernels::load_value(item.values, item.type, i) / item.divisor;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        const auto upper = static_cast<std::uint16_t>(bits >> 16);
        std::memcpy(item.message + 2 * i, &upper, sizeof upper);
      }
      if (item.message_bytes != nullptr) *item.message_bytes = bytes;
    }
  }

  void decode(std::span<const DecodeItem> items, void* /*stream*/) const override {
    for (const DecodeItem& item : items) {
      for (const std::int64_t bytes : item.message_bytes) {
        if (bytes != encoded_bytes(item.elements)) {
          throw std::runtime_error("upperhalf: a message of another length");
        }
      }
      for (std::int64_t i = 0; i < item.elements; ++i) decode_one(item, i);
    }
  }

 private:
  static float decoded(const std::byte* message, std::int64_t i) {
    std::uint16_t upper = 0;
    std::memcpy(&upper, message + 2 * i, sizeof upper);
    const std::uint32_t bits = std::uint32_t{upper} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  static void decode_one(const DecodeItem& item, std::int64_t i) {
    if (item.mode == kernels::DecodeMode::kOverwrite) {
      return kernels::store_value(item.values, item.type, i, decoded(item.messages[0], i));
    }
    float sum = kernels::load_value(item.values, item.type, i) / item.own_divisor;
    for (const std::byte* message : item.messages) sum += decoded(message, i);
    kernels::store_value(item.values, item.type, i, sum / item.sum_divisor);
  }

  const kernels::CodecTraits traits_ = {};
};

}  // namespace

void register_upper_half() {
  static const bool once = [] {
    kernels::register_algorithm({.name = "upperhalf",
                                 .coarseness = 1,
                                 .traffic = {.encode = 6, .decode = 6, .decode_add = 10},
                                 .help = "the upper half of every number's bits",
                                 .parameters = {},
                                 .make = [](const auto& /*values*/, kernels::Device device)
                                     -> std::unique_ptr<kernels::Codec> {
                                   if (device == kernels::Device::kCpu)
                                     return std::make_unique<UpperHalf>();
                                   return nullptr;
                                 }});
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace hipress::tests
