#include "kernels/codec/item_checks.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace hipress::kernels {

void check_encodes(std::span<const EncodeItem> items) {
  for (const EncodeItem& item : items) {
    if (item.elements < 0) {
      throw std::invalid_argument(fmt::format("encode: a slice of {} elements", item.elements));
    }
    if (item.elements > 0 && (item.values == nullptr || item.message == nullptr)) {
      throw std::invalid_argument("encode: a slice without values or without room for its message");
    }
  }
}

void check_decodes(std::span<const DecodeItem> items, std::string_view name) {
  for (const DecodeItem& item : items) {
    if (item.elements < 0 || (item.elements > 0 && item.values == nullptr)) {
      throw std::invalid_argument(fmt::format("{}: decode into a slice of {} elements at {}", name,
                                              item.elements, fmt::ptr(item.values)));
    }
    if (item.messages.size() != item.message_bytes.size() ||
        (item.mode == DecodeMode::kOverwrite && item.messages.size() != 1)) {
      throw std::invalid_argument(
          fmt::format("{}: decode got {} messages and {} lengths; overwriting takes one of each",
                      name, item.messages.size(), item.message_bytes.size()));
    }
  }
}

}  // namespace hipress::kernels
