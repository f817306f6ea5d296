#include "kernels/compll/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::compll {

namespace {
constexpr std::size_t kLongestSource = 1 << 20;
}

Source read_source(const std::string& path) {
  Source source{path, io::read_file(path)};
  if (source.text.size() > kLongestSource) {
    throw io::InputError(path, 0, "is longer than 1 MiB, which no program needs");
  }
  return source;
}

std::string describe(const Place& place, std::string_view kind, std::string_view message) {
  const std::string& text = place.source->text;
  const std::size_t at = std::min(place.begin, text.size());
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t line_begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t line_end = std::min(text.find('\n', at), text.size());
  const auto line_number = 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
  std::string line = text.substr(line_begin, line_end - line_begin);
  // The caret stands under its character also where tabs and unprintable bytes are.
  std::string margin;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (line[i] != '\t' && (byte < 0x20 || byte == 0x7f)) line[i] = '?';
    const bool continues = (byte & 0xc0) == 0x80;  // of a UTF-8 character
    if (line_begin + i < at && !continues) margin += line[i] == '\t' ? '\t' : ' ';
  }
  const std::size_t room = line_end > at ? line_end - at : 1;
  const std::size_t length = std::clamp<std::size_t>(place.length, 1, room);
  return fmt::format("{}:{}:{}: {}{}\n{}\n{}^{}", place.source->path, line_number,
                     at - line_begin + 1, kind, message, line, margin,
                     std::string(length - 1, '~'));
}

}  // namespace hipress::compll
