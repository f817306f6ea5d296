#pragma once

#include <cstddef>
#include <string_view>

namespace hipress::io {

/// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 if there is none:
/// another encoding, a character cut short, an overlong form, a surrogate, or more than U+10FFFF
/// (RFC 3629).
std::size_t utf8_length(std::string_view text);

}  // namespace hipress::io
