#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace hipress::io {

/// The request is wrong: a malformed file, an unknown name, an impossible value. Tools exit with 2.
/// The message says what is wrong, where, and what would be accepted.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// `file:line: message`, the form in which every tool names a culprit. `line` counts from 1;
  /// 0 means the file as a whole and is left out.
  InputError(const std::string& file, int line, const std::string& message)
      : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : "") + ": " + message) {}
};

/// The request was fine but the run failed: a peer died, data did not verify. Tools exit with 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An honest "no": the search did not converge, the bound is not met. Tools exit with 3.
class Unmet : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text` between quotation marks for a message: control bytes as \xNN, cut after 80 bytes.
std::string quote(std::string_view text);

}  // namespace hipress::io
