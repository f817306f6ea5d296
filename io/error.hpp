#pragma once

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hipress::io {

/// The request is wrong: a malformed file, an unknown name, an impossible value. Tools exit with 2.
/// The message says what is wrong, where, and what would be accepted.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// `file:line: message`, the form in which every tool names a culprit, with printable_path().
  /// `line` counts from 1; 0 means the file as a whole and is left out.
  InputError(const std::string& file, int line, const std::string& message);

  /// The file that it is about, as it was named; null: the message alone says where.
  const std::string* file() const noexcept { return file_.get(); }
  int line() const noexcept { return line_; }  ///< 0: the file as a whole

 private:
  std::shared_ptr<const std::string> file_;  ///< shared, since errors are copied without throwing
  int line_ = 0;
};

/// The request was fine but the run failed: a peer died, data did not verify. Tools exit with 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The requirement was not met, such as a bound or a search that converges. Tools exit with 3.
class Unmet : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The remedy where memory, threads, descriptors or room on a disk ran out (ENOMEM, EAGAIN, EMFILE,
/// ENOSPC …); null for any other error. EAGAIN is taken to mean that a thread or process could not
/// be started.
const char* remedy(int error_number) noexcept;

/// What a person is told of an error: its own sentence, with the remedy where memory, threads or
/// descriptors ran out, of which the standard library only says "Resource temporarily unavailable".
std::string describe(const std::exception& error);

/// The file cannot be `action` ("read", "written"), for the reason that `error_number` says:
/// RunError where something ran out, otherwise InputError.
[[noreturn]] void refuse_file(const std::string& path, std::string_view action, int error_number);

/// `text` between quotation marks for a message: printable() (utf8.hpp), cut after 80 bytes.
std::string quote(std::string_view text);

/// The name of a file for a message: printable() (utf8.hpp). A name that is longer than any file's
/// (PATH_MAX) is cut as quote() does.
std::string printable_path(std::string_view path);

}  // namespace hipress::io
