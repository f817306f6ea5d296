#include "io/error.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace hipress::io {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string quoted = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + (text.size() > kLongest ? "…'" : "'");
}

}  // namespace hipress::io
