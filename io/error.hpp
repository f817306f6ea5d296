#pragma once

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hipress::io {

/// Invalid request: a malformed file, an unknown name, an impossible value. Tools exit with 2. The
/// message says what is wrong, where, and what would be accepted.
///
///     throw InputError("plan.yaml", 7, "nodes must be a positive integer, got '-3'");
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// Message `file:line: message`, with the file as printable_path() shows it. `line` counts from
  /// 1; 0 stands for the whole file and is left out.
  InputError(const std::string& file, int line, const std::string& message);

  /// File of the error, as the user named it; null if the error is not about a file.
  const std::string* file() const noexcept { return file_.get(); }
  int line() const noexcept { return line_; }  ///< 0: the whole file

 private:
  std::shared_ptr<const std::string> file_;  ///< shared, since errors are copied without throwing
  int line_ = 0;
};

/// Failed run of a valid request: a peer died, data did not verify. Tools exit with 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Unmet requirement, such as a bound, or a search that must converge. Tools exit with 3.
class Unmet : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Remedy if memory, threads, descriptors or disk space are exhausted (ENOMEM, EAGAIN, EMFILE,
/// ENOSPC …); null for any other error. EAGAIN is taken to come from starting a thread.
const char* remedy(int error_number) noexcept;

/// Message for users: the error's own text, plus remedy() for std::bad_alloc and exhausted
/// resources, which the standard library only calls "Resource temporarily unavailable".
std::string describe(const std::exception& error);

/// Throws "`path`: cannot be `action`" ("read", "written") with the reason of `error_number`: a
/// RunError with the remedy() if it has one, otherwise an InputError.
[[noreturn]] void refuse_file(const std::string& path, std::string_view action, int error_number);

/// Quotes `text` for a message: printable() (utf8.hpp), cut after 80 bytes, in quotation marks.
std::string quote(std::string_view text);

/// File name for a message: printable() (utf8.hpp). Names of PATH_MAX bytes or more are cut as
/// quote() does.
std::string printable_path(std::string_view path);

}  // namespace hipress::io
