#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/descriptors.hpp"

namespace hipress::io {

class Inputs;

/// What an input may cost. Regular files and pipes are inputs, and nothing else is.
struct ReadLimits {
  using Seconds = std::chrono::duration<double>;

  std::int64_t most_bytes = std::int64_t{1} << 30;  ///< more are refused, not cut off
  /// How long a named pipe waits for some process to open it for writing.
  Seconds writer = std::chrono::seconds(10);
  /// How long all of a pipe may take, from when it is opened: `<(command)`, /dev/stdin, a FIFO.
  Seconds pipe = std::chrono::seconds(30);
};

/// A regular file or pipe that is read from its beginning to its end. InputError, which names the
/// file, for anything else: a device, terminal, socket or folder, a disk error, more bytes than the
/// limit, or a pipe whose writer does not come or does not finish. RunError if descriptors or
/// memory run out.
class InputFile {
 public:
  explicit InputFile(std::string path, ReadLimits limits = {});

  /// Up to `most` bytes, and 0 only at the end.
  std::size_t read(char* to, std::size_t most);
  /// The bytes that a regular file had when it was opened; none for a pipe, whose end is unknown.
  std::optional<std::int64_t> size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  using Clock = std::chrono::steady_clock;

  using Seconds = ReadLimits::Seconds;

  bool expired(Seconds limit) const;
  void await_bytes(Seconds limit);
  void await_writer();
  bool had_writer() const;
  void require_writer_in_time() const;
  [[noreturn]] void fail(const std::string& message) const;

  std::string path_;
  ReadLimits limits_;
  Clock::time_point opened_ = Clock::now();
  Descriptor file_;
  std::optional<std::int64_t> size_;
  std::int64_t bytes_read_ = 0;
};

/// The duration of one request, for processes that answer many: one request's output may be another
/// one's input. While a scope lives, refuse_input() on its thread knows only the files that the
/// thread has read within the scope. Scopes may be nested.
class InputScope {
 public:
  InputScope();
  ~InputScope();
  InputScope(const InputScope&) = delete;
  InputScope& operator=(const InputScope&) = delete;

 private:
  std::unique_ptr<Inputs> inputs_;
  Inputs* outer_;
};

}  // namespace hipress::io
