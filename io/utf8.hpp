#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 if there is none:
/// another encoding, a character cut short, an overlong form, a surrogate, or more than U+10FFFF
/// (RFC 3629).
std::size_t utf8_length(std::string_view text);

/// Text that a terminal shows as it is: the bytes of control characters, and those that are not
/// UTF-8, become \xNN.
std::string printable(std::string_view text);

}  // namespace hipress::io
