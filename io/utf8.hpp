#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// Length in bytes of the UTF-8 character at the start of `text` (not empty); 0 if it is invalid: a
/// different encoding, a truncated character, an overlong form, a surrogate, or above U+10FFFF (RFC
/// 3629).
std::size_t utf8_length(std::string_view text);

/// Length in bytes of the character at the start of `text` (not empty) if it is printable; else 0.
/// Not printable: bytes that are not UTF-8, control characters (U+0000–1F, U+007F–9F), line and
/// paragraph separators (U+2028–9), invisible characters and direction controls (Unicode's
/// Default_Ignorable_Code_Point and U+FFF9–B), byte order marks (U+FEFF) and noncharacters
/// (U+FDD0–EF, U+xxFFFE–F), which YAML cannot hold.
std::size_t printable_length(std::string_view text);

/// Description of the first character of `text` that is not printable: "control character U+001B",
/// "byte 0xff, which is not UTF-8". Empty if all are. Characters in `allowed` (ASCII) pass.
std::string first_unprintable(std::string_view text, std::string_view allowed = {});

/// Reason why a name is refused: "more than 4096 bytes", or first_unprintable(). Empty if it is
/// fine.
std::string unfit_for_name(std::string_view name);

/// `text` for a message: each byte of an unprintable character becomes \xNN. Characters in
/// `allowed` (ASCII) pass.
std::string printable(std::string_view text, std::string_view allowed = {});

}  // namespace hipress::io
