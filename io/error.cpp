#include "io/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <new>
#include <system_error>

#include "io/utf8.hpp"

namespace hipress::io {

namespace {

/// At most the first 80 bytes of a text, without cutting a UTF-8 character.
std::string_view beginning(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  // Go back to the start of the character. Text that is not UTF-8 is cut at kLongest.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  if (kLongest - end >= 4) end = kLongest;
  return text.substr(0, end);
}

}  // namespace

InputError::InputError(const std::string& file, int line, const std::string& message)
    : std::runtime_error(line > 0 ? fmt::format("{}:{}: {}", printable_path(file), line, message)
                                  : fmt::format("{}: {}", printable_path(file), message)),
      file_(std::make_shared<const std::string>(file)),
      line_(line) {}

const char* remedy(int error_number) noexcept {
  switch (error_number) {
    case ENOMEM:
      return "out of memory: allow this process more (ulimit -v, the container's limit), or try "
             "fewer nodes, partitions, gradients or threads";
    case EAGAIN:
      return "a thread or process could not be started: raise the limit of processes (ulimit -u) "
             "or of memory (ulimit -v), or try fewer threads or ranks";
    case EMFILE:
      return "this process may open no more files: raise the limit (ulimit -n), or try fewer ranks";
    case ENFILE:
      return "this machine may open no more files: end other programs, or raise sysctl fs.file-max";
    case ENOSPC:
      return "free some space, or choose another folder";
    case EDQUOT:
      return "free some of your quota, or choose another folder";
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f), or choose another folder";
    default:
      return nullptr;
  }
}

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return remedy(ENOMEM);
  const auto* failed = dynamic_cast<const std::system_error*>(&error);
  const bool ours = failed && (failed->code().category() == std::generic_category() ||
                               failed->code().category() == std::system_category());
  const char* advice = ours ? remedy(failed->code().value()) : nullptr;
  return advice ? fmt::format("{}: {}", error.what(), advice) : error.what();
}

void refuse_file(const std::string& path, std::string_view action, int error_number) {
  const std::string reason = std::strerror(error_number);
  if (const char* advice = remedy(error_number)) {
    throw RunError(fmt::format("{}: cannot be {}: {}: {}", path, action, reason, advice));
  }
  throw InputError(path, 0, fmt::format("cannot be {}: {}", action, reason));
}

std::string quote(std::string_view text) {
  const std::string_view shown = beginning(text);
  return fmt::format("'{}{}'", printable(shown), shown.size() < text.size() ? "…" : "");
}

std::string printable_path(std::string_view path) {
  return path.size() < PATH_MAX ? printable(path) : printable(beginning(path)) + "…";
}

}  // namespace hipress::io
