#include "io/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace hipress::io {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  ///< in bytes; 0: invalid
};

Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const std::size_t length = (first & 0xe0) == 0xc0   ? 2
                             : (first & 0xf0) == 0xe0 ? 3
                             : (first & 0xf8) == 0xf0 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return {};
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    code = code << 6 | (byte & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kMin = {0, 0, 0x80, 0x800,
                                                 0x10000};  // smallest code per length
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kMin[length] || surrogate || code > 0x10ffff ? Character{}
                                                             : Character{code, length};
}

/// A range of unprintable characters, and its name.
struct Range {
  std::uint32_t first, last;
  std::string_view name;
};
constexpr std::string_view kControl = "control character", kInvisible = "invisible character",
                           kDirection = "direction control";
constexpr Range kUnprintable[] = {{0x00, 0x1f, kControl},
                                  {0x7f, 0x9f, kControl},
                                  {0xad, 0xad, kInvisible},
                                  {0x34f, 0x34f, kInvisible},
                                  {0x61c, 0x61c, kDirection},
                                  {0x115f, 0x1160, kInvisible},
                                  {0x17b4, 0x17b5, kInvisible},
                                  {0x180b, 0x180f, kInvisible},
                                  {0x200b, 0x200d, kInvisible},
                                  {0x200e, 0x200f, kDirection},
                                  {0x2028, 0x2029, "line separator"},
                                  {0x202a, 0x202e, kDirection},
                                  {0x2060, 0x2065, kInvisible},
                                  {0x2066, 0x2069, kDirection},
                                  {0x206a, 0x206f, kInvisible},
                                  {0x3164, 0x3164, kInvisible},
                                  {0xfdd0, 0xfdef, "noncharacter"},
                                  {0xfe00, 0xfe0f, kInvisible},
                                  {0xfeff, 0xfeff, "byte order mark"},
                                  {0xffa0, 0xffa0, kInvisible},
                                  {0xfff0, 0xfffb, kInvisible},
                                  {0x1bca0, 0x1bca3, kInvisible},
                                  {0x1d173, 0x1d17a, kInvisible},
                                  {0xe0000, 0xe0fff, kInvisible}};

/// Name of an unprintable character; empty if it is printable.
std::string_view unprintable_name(std::uint32_t code) {
  if ((code & 0xfffe) == 0xfffe) return "noncharacter";  // the last two of every plane
  const auto* range = std::find_if(std::begin(kUnprintable), std::end(kUnprintable),
                                   [&](const Range& r) { return code <= r.last; });
  return range != std::end(kUnprintable) && code >= range->first ? range->name : "";
}

}  // namespace

std::size_t utf8_length(std::string_view text) { return first_character(text).length; }

std::size_t printable_length(std::string_view text) {
  const Character character = first_character(text);
  return unprintable_name(character.code).empty() ? character.length : 0;
}

std::string first_unprintable(std::string_view text, std::string_view allowed) {
  while (!text.empty()) {
    std::size_t length = printable_length(text);
    if (length == 0 && allowed.find(text[0]) != std::string_view::npos) length = 1;
    if (length == 0) {
      const Character character = first_character(text);
      if (character.length > 0) {
        return fmt::format("{} U+{:04X}", unprintable_name(character.code), character.code);
      }
      return fmt::format("byte 0x{:02x}, which is not UTF-8", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(length);
  }
  return {};
}

std::string unfit_for_name(std::string_view name) {
  constexpr std::size_t kLongest = 4096;
  return name.size() > kLongest ? fmt::format("more than {} bytes", kLongest)
                                : first_unprintable(name);
}

std::string printable(std::string_view text, std::string_view allowed) {
  std::string shown;
  while (!text.empty()) {
    const bool plain = allowed.find(text[0]) != std::string_view::npos;
    const std::size_t length = plain ? 1 : printable_length(text);
    if (length > 0) {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    }
  }
  return shown;
}

}  // namespace hipress::io
