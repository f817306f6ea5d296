#include "kernels/compll/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"
#include "io/input_file.hpp"
#include "io/utf8.hpp"

namespace hipress::compll {

namespace {
constexpr std::int64_t kLongestSource = 1 << 20;
}

Source read_source(const std::string& path) {
  if (io::printable(path) != path) {
    throw io::InputError(io::printable(path), 0,
                         "the name of a program has control characters or is not UTF-8; rename it");
  }
  Source source{path, io::read_file(path, {.most_bytes = kLongestSource})};
  io::refuse_kind(path, source.text);
  return source;
}

namespace {

/// Maximum numbers of characters of a source line that are shown before and after the caret.
constexpr std::size_t kShownBefore = 60, kShownAfter = 40;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Byte range of the shown part of a line.
struct Shown {
  std::size_t begin, end;
};

Shown shown_part(std::string_view text, Shown line, std::size_t at) {
  Shown shown{at, at};
  for (std::size_t n = 0; n < kShownBefore && shown.begin > line.begin; ++n) {
    do --shown.begin;
    while (shown.begin > line.begin && continues_character(text[shown.begin]));
  }
  for (std::size_t n = 0; n < kShownAfter && shown.end < line.end; ++n) {
    do ++shown.end;
    while (shown.end < line.end && continues_character(text[shown.end]));
  }
  return shown;
}

}  // namespace

std::string describe(const Place& place, std::string_view kind, std::string_view message) {
  const std::string& text = place.source->text;
  const std::size_t at = std::min(place.begin, text.size());
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const Shown whole{before == std::string::npos ? 0 : before + 1,
                    std::min(text.find('\n', at), text.size())};
  const Shown shown = shown_part(text, whole, at);
  const auto line_number = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
  std::string line = shown.begin > whole.begin ? "…" : "";
  std::string margin = shown.begin > whole.begin ? " " : "";
  // Keep the caret under its character if the line has tabs or unprintable bytes.
  for (std::size_t i = shown.begin; i < shown.end; ++i) {
    line += text[i] != '\t' && is_control(text[i]) ? '?' : text[i];
    if (i < at && !continues_character(text[i])) margin += text[i] == '\t' ? '\t' : ' ';
  }
  if (shown.end < whole.end) line += "…";
  const std::size_t room = shown.end > at ? shown.end - at : 1;
  const std::size_t length = std::clamp<std::size_t>(place.length, 1, room);
  return fmt::format("{}:{}:{}: {}{}\n{}\n{}^{}", io::printable(place.source->path), line_number,
                     at - whole.begin + 1, kind, message, line, margin,
                     std::string(length - 1, '~'));
}

}  // namespace hipress::compll
