#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// Length in bytes of the UTF-8 character at the start of `text` (not empty). 0 if not valid (RFC
/// 3629): other encodings, truncated or overlong characters, surrogates, values above U+10FFFF.
std::size_t utf8_length(std::string_view text);

/// Length in bytes of the character at the start of `text` (not empty); 0 if it is not printable.
/// Not printable are bytes that are not UTF-8, control characters (U+0000–1F, U+007F–9F), line and
/// paragraph separators (U+2028–9), invisible characters and direction controls (Unicode's
/// Default_Ignorable_Code_Point and U+FFF9–B), byte order marks (U+FEFF) and noncharacters
/// (U+FDD0–EF, U+xxFFFE–F), which YAML cannot hold.
std::size_t printable_length(std::string_view text);

/// Description of the first character of `text` that is not printable: "control character U+001B",
/// "byte 0xff, which is not UTF-8". Empty if all are. ASCII characters in `allowed` pass.
std::string first_unprintable(std::string_view text, std::string_view allowed = {});

/// Reason to refuse a name: "more than 4096 bytes", or first_unprintable(). Empty for a valid name.
std::string unfit_for_name(std::string_view name);

/// Replaces each byte of an unprintable character by \xNN, for messages. ASCII characters in
/// `allowed` stay.
std::string printable(std::string_view text, std::string_view allowed = {});

}  // namespace hipress::io
