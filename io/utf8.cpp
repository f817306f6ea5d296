#include "io/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace hipress::io {

std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = (first & 0xe0) == 0xc0   ? 2
                             : (first & 0xf0) == 0xe0 ? 3
                             : (first & 0xf8) == 0xf0 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  std::uint32_t character = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};  // by length
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  return character < kLeast[length] || surrogate || character > 0x10ffff ? 0 : length;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080 … U+009F are control characters too.
    const bool controls =
        first < 0x20 || first == 0x7f || (first == 0xc2 && length == 2 && (text[1] & 0x60) == 0);
    if (length > 0 && !controls) {
      shown += character;
    } else {
      for (const char c : character) {
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace hipress::io
