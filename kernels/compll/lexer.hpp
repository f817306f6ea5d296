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
  std::uint64_t integer = 0;  ///< value of a kInteger
  double real = 0;            ///< value of a kReal
};

/// Splits a source into tokens, kEnd last. Throws CompileError for a character that begins no
/// token, a malformed or too large number, or an unterminated comment.
std::vector<Token> tokenize(const Source& source);

}  // namespace hipress::compll
