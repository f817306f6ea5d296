#include "io/spelling.hpp"

#include <algorithm>
#include <iterator>

namespace hipress::io {
namespace {

bool is_small(char c) { return c >= 'a' && c <= 'z'; }

bool is_field(std::string_view word) {
  return !word.empty() && is_small(word.front()) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return is_small(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

std::string as_command_line(std::string_view sentence) {
  std::string text;
  while (true) {
    const std::size_t opening = sentence.find('`');
    text += sentence.substr(0, opening);
    if (opening == std::string_view::npos) return text;
    sentence.remove_prefix(opening + 1);
    const std::size_t closing = sentence.find('`');
    const std::string_view word = sentence.substr(0, closing);
    if (closing == std::string_view::npos || !is_field(word) || text.ends_with('\'')) {
      text += '`';  // the next backtick may open a field
      continue;
    }
    text += "--";
    std::replace_copy(word.begin(), word.end(), std::back_inserter(text), '_', '-');
    sentence.remove_prefix(closing + 1);
  }
}

}  // namespace hipress::io
