#include "io/utf8.hpp"

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

}  // namespace hipress::io
