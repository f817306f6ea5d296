#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/compll/source.hpp"

namespace hipress::compll {

enum class TokenKind : std::uint8_t { kName, kInteger, kReal, kPunctuation, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  Place place;
  std::uint64_t integer = 0;  ///< kInteger
  double real = 0;            ///< kReal
};

/// The tokens of a source, kEnd last. CompileError for a character that begins none, a malformed or
/// too large number, or a comment without an end.
std::vector<Token> tokenize(const Source& source);

}  // namespace hipress::compll
