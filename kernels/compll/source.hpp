#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Program text, places in it, and the compiler's messages.
namespace hipress::compll {

/// One file of source text.
struct Source {
  std::string path;  ///< as given by the user; messages begin with it
  std::string text;
};

/// Reads a file. Throws io::InputError if the file cannot be read, is longer than 1 MiB, or has a
/// format that io::kind_of() knows, or if its name has control characters or is not UTF-8.
Source read_source(const std::string& path);

/// A stretch of a source's text.
struct Place {
  const Source* source = nullptr;
  std::size_t begin = 0;  ///< byte offset
  std::size_t length = 0;
};

/// Formats a message: "FILE.pse:3:14: message", the source line, and a caret under the place.
/// `kind` goes before the message ("note: ") and may be empty. Of a long line, about 100 characters
/// around the caret are shown, with "…" where the line is cut.
std::string describe(const Place& place, std::string_view kind, std::string_view message);

/// Error in a program; what() is the whole message as printed.
class CompileError : public std::invalid_argument {
 public:
  CompileError(const Place& place, std::string_view message)
      : std::invalid_argument(describe(place, "", message)) {}
};

/// Notes of the compiler for the user, formatted as errors are.
using Notes = std::vector<std::string>;

}  // namespace hipress::compll
