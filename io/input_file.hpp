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

/// Limits for reading an input. Inputs are regular files and pipes.
struct ReadLimits {
  using Seconds = std::chrono::duration<double>;

  std::int64_t most_bytes = std::int64_t{1} << 30;  ///< larger inputs are refused, not truncated
  /// Timeout for a writer to open a named pipe.
  Seconds writer = std::chrono::seconds(10);
  /// Timeout for a whole pipe, from its opening: `<(command)`, /dev/stdin, a FIFO.
  Seconds pipe = std::chrono::seconds(30);
};

/// A regular file or pipe, read from beginning to end. Throws InputError, with the file name, for
/// devices, terminals, sockets and folders, for disk errors, for more bytes than the limit, and for
/// a pipe that is not opened and finished in time. Throws RunError if descriptors or memory run
/// out.
class InputFile {
 public:
  explicit InputFile(std::string path, ReadLimits limits = {});

  /// Reads up to `most` bytes; 0 only at the end.
  std::size_t read(char* to, std::size_t most);
  /// Size of a regular file when it was opened, in bytes; empty for a pipe.
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

/// Scope of one request, for processes that answer several: the input of one may be the output of a
/// later one. Within a scope, refuse_input() considers only files that the calling thread has read
/// in that scope. Scopes may be nested.
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
