#include "io/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "io/error.hpp"

namespace hipress::io {
namespace {

/// One part of a text: several values to choose from, or a single plain text.
using Piece = std::vector<std::string_view>;

/// Splits a text around values with bars: "x(a=", "1" | "2", ",b=3)".
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::size_t plain = 0;  // start of the text after the last piece
  for (std::size_t bar = text.find('|'); bar != std::string_view::npos; bar = text.find('|', bar)) {
    const std::size_t before = text.find_last_of("=,(|", bar - (bar > 0 ? 1 : 0));
    const std::size_t end = std::min(text.find_first_of(",)", bar), text.size());
    if (before != std::string_view::npos && before >= plain && text[before] == '=') {
      pieces.push_back({text.substr(plain, before + 1 - plain)});
      Piece& values = pieces.emplace_back();
      for (std::size_t at = before + 1; at <= end;) {
        const std::size_t next = std::min(text.find('|', at), end);
        values.push_back(text.substr(at, next - at));
        at = next + 1;
      }
      plain = end;
    }
    bar = end;
  }
  pieces.push_back({text.substr(plain)});
  return pieces;
}

}  // namespace

std::vector<std::string> alternatives(std::string_view text, std::size_t most,
                                      std::string_view what) {
  std::vector<std::string> texts = {""};
  const std::vector<Piece> pieces = pieces_of(text);
  std::size_t product = 1;
  for (const Piece& piece : pieces) {
    if (piece.size() > most / product) {
      throw std::invalid_argument(
          fmt::format("{} stands for more than {} {}; give fewer values", quote(text), most, what));
    }
    product *= piece.size();
  }
  for (const Piece& piece : pieces) {
    std::vector<std::string> longer;
    for (const std::string& begin : texts) {
      for (const std::string_view word : piece) longer.push_back(begin + std::string(word));
    }
    texts = std::move(longer);
  }
  return texts;
}

std::string first_alternative(std::string_view text) {
  std::string first;
  for (const Piece& piece : pieces_of(text)) first += piece.front();
  return first;
}

}  // namespace hipress::io
