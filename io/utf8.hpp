#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 if there is none:
/// another encoding, a character cut short, an overlong form, a surrogate, or more than U+10FFFF
/// (RFC 3629).
std::size_t utf8_length(std::string_view text);

/// Bytes of the character that `text`, which is not empty, begins with, if it may be printed as it
/// is; else 0. These must not be printed: bytes that are not UTF-8, control characters (U+0000–1F,
/// U+007F–9F), line and paragraph separators (U+2028–9), what shows nothing or turns the direction
/// of text (Unicode's Default_Ignorable_Code_Point and U+FFF9–B), byte order marks (U+FEFF) and
/// noncharacters (U+FDD0–EF, U+xxFFFE–F), which YAML cannot hold.
std::size_t printable_length(std::string_view text);

/// Names the first character of `text` that must not be printed as it is, "control character
/// U+001B" or "byte 0xff, which is not UTF-8"; empty if there is none. Characters in `allowed`,
/// which is ASCII, may be printed.
std::string first_unprintable(std::string_view text, std::string_view allowed = {});

/// The reason why a name is refused: "more than 4096 bytes", or its first_unprintable().
/// Empty if there is nothing.
std::string unfit_for_name(std::string_view name);

/// `text` for a message: every byte of what must not be printed as it is as \xNN, but
/// for those in `allowed`, ASCII.
std::string printable(std::string_view text, std::string_view allowed = {});

}  // namespace hipress::io
