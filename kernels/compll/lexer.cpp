#include "kernels/compll/lexer.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "io/error.hpp"

namespace hipress::compll {

namespace {

constexpr std::size_t kLongestWord = 80;

/// Order in which tokens are tried: "<=" comes before its prefix "<".
constexpr std::array<std::string_view, 39> kPunctuation = {
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "+=", "-=", "*=", "/=",
    "+",  "-",  "*",  "/",  "%",  "<",  ">",  "=",  "!",  "&",  "|",  "^",  "~",
    "?",  ":",  ";",  ",",  ".",  "(",  ")",  "{",  "}",  "[",  "]",  "#",  "@"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return begins_name(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) tokens.push_back(next());
    tokens.push_back({.kind = TokenKind::kEnd, .text = "the end", .place = place(at_, 0)});
    return tokens;
  }

 private:
  Place place(std::size_t begin, std::size_t length) const { return {&source_, begin, length}; }
  char at(std::size_t index) const { return index < text_.size() ? text_[index] : '\0'; }

  void skip_blanks() {
    for (;;) {
      const char c = at(at_);
      if (at_ < text_.size() && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
        ++at_;
      } else if (c == '/' && at(at_ + 1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && at(at_ + 1) == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          throw CompileError(place(at_, 2), "this comment has no end; close it with */");
        }
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  Token next() {
    const char c = at(at_);
    if (begins_name(c)) return name();
    if (is_digit(c) || (c == '.' && is_digit(at(at_ + 1)))) return number();
    for (const std::string_view sign : kPunctuation) {
      if (text_.substr(at_, sign.size()) == sign) return take(TokenKind::kPunctuation, sign.size());
    }
    throw CompileError(place(at_, 1), "this character is no part of the language");
  }

  Token take(TokenKind kind, std::size_t length) {
    Token token{.kind = kind, .text = text_.substr(at_, length), .place = place(at_, length)};
    at_ += length;
    return token;
  }

  Token name() {
    std::size_t end = at_;
    while (continues_name(at(end))) ++end;
    if (end - at_ > kLongestWord) {
      throw CompileError(place(at_, end - at_),
                         fmt::format("this name has more than {} letters", kLongestWord));
    }
    return take(TokenKind::kName, end - at_);
  }

  Token number() {
    const bool hexadecimal = at(at_) == '0' && (at(at_ + 1) == 'x' || at(at_ + 1) == 'X');
    std::size_t end = at_;
    while (continues_name(at(end)) || at(end) == '.' ||
           (!hexadecimal && (at(end) == '+' || at(end) == '-') &&
            (at(end - 1) == 'e' || at(end - 1) == 'E'))) {
      ++end;
    }
    Token token = take(TokenKind::kInteger, end - at_);
    std::string_view digits = token.text;
    const auto malformed = [&] {
      return CompileError(
          token.place,
          fmt::format("{} is no number; write 12, 0x1f, 1.5, 1e-3 or 1.5f", io::quote(token.text)));
    };
    const char* const last = digits.data() + digits.size();
    if (hexadecimal) {
      const auto [stop, error] = std::from_chars(digits.data() + 2, last, token.integer, 16);
      if (error == std::errc::result_out_of_range) throw too_large(token);
      if (error != std::errc() || stop != last) throw malformed();
    } else if (digits.find_first_of(".eEf") == std::string_view::npos) {
      const auto [stop, error] = std::from_chars(digits.data(), last, token.integer);
      if (error == std::errc::result_out_of_range) throw too_large(token);
      if (error != std::errc() || stop != last) throw malformed();
    } else {
      token.kind = TokenKind::kReal;
      if (digits.back() == 'f') digits.remove_suffix(1);
      const auto [stop, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), token.real);
      if (error == std::errc::result_out_of_range ||
          std::fabs(token.real) > 3.4028234663852886e38) {
        throw too_large(token);
      }
      if (error != std::errc() || stop != digits.data() + digits.size()) throw malformed();
    }
    if (token.kind == TokenKind::kInteger && token.integer > 0x7fffffffffffffffu) {
      throw too_large(token);
    }
    return token;
  }

  static CompileError too_large(const Token& token) {
    return {token.place, "this number does not fit its type: int holds 64 bits, float fp32"};
  }

  const Source& source_;
  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace hipress::compll
