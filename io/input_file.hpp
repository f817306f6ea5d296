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

/// A regular file or pipe that is read from its beginning to its end. Everything but the bytes of
/// the file is an InputError that names the file: devices, terminals, sockets and folders, errors
/// of the disk, more bytes than the limit, a pipe whose writer does not come or does not finish.
/// RunError where descriptors or memory run out.
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

/// What one request reads: while it lives, refuse_input() on this thread knows the files that this
/// thread has read within it, and no others. For processes that answer many requests, where a file
/// may be the output of one and the input of another. Scopes may lie within each other.
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
