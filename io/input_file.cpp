#include "io/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"

namespace hipress::io {

/// Regular files that were read, and the content of pipes, which can be read only once. The key is
/// device, inode and modification time, since inode numbers are reused.
class Inputs {
 public:
  void add(const struct stat& status) {
    const std::lock_guard lock(mutex_);
    read_.insert(identity_of(status));
  }
  bool contains(const struct stat& status) const {
    const std::lock_guard lock(mutex_);
    return read_.contains(identity_of(status));
  }
  void keep(const struct stat& pipe, const std::string& content) {
    const std::lock_guard lock(mutex_);
    pipes_[identity_of(pipe)] = content;
  }
  std::optional<std::string> kept(const struct stat& pipe) const {
    const std::lock_guard lock(mutex_);
    const auto found = pipes_.find(identity_of(pipe));
    return found == pipes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  using Identity = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;
  static Identity identity_of(const struct stat& status) {
    return {status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  mutable std::mutex mutex_;
  std::set<Identity> read_;
  std::map<Identity, std::string> pipes_;
};

namespace {

/// Reason why a file of this mode cannot be an input; empty for regular files and pipes.
std::string_view wrong_kind(mode_t mode) {
  if (S_ISREG(mode) || S_ISFIFO(mode)) return {};
  if (S_ISDIR(mode)) return "is a folder, give the name of a file";
  if (S_ISSOCK(mode)) return "is a socket, give a regular file or a pipe";
  return "is a device or terminal, give a regular file or a pipe";
}

/// Throws InputError for bytes that are not UTF-8, and for control bytes other than tab.
void require_text(const std::string& path, int line_number, std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const std::size_t length = utf8_length(line.substr(i));
    if (length == 0 || (byte < 0x20 && byte != '\t')) {
      throw InputError(path, line_number,
                       fmt::format("byte 0x{:02x} at column {} is no text; give a UTF-8 text file",
                                   byte, i + 1));
    }
    i += length;
  }
}

thread_local Inputs* of_scope = nullptr;

Inputs& inputs() {
  static Inputs all;
  return of_scope != nullptr ? *of_scope : all;
}

}  // namespace

InputScope::InputScope()
    : inputs_(std::make_unique<Inputs>()), outer_(std::exchange(of_scope, inputs_.get())) {}

InputScope::~InputScope() { of_scope = outer_; }

void refuse_input(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !inputs().contains(status)) return;
  throw InputError(path, 0,
                   "is an input of this run, and its output would take its place; name another "
                   "file to write");
}

void InputFile::fail(const std::string& message) const { throw InputError(path_, 0, message); }

InputFile::InputFile(std::string path, ReadLimits limits)
    : path_(std::move(path)), limits_(limits) {
  struct stat status {};
  if (path_.empty()) throw InputError("the name of a file to read is empty; give one");
  // Checked before opening, which may have side effects on a device.
  if (::stat(path_.c_str(), &status) == 0) {
    if (const auto wrong = wrong_kind(status.st_mode); !wrong.empty()) fail(std::string(wrong));
  }
  // Without O_NONBLOCK, opening a named pipe would wait for its writer without a limit.
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file_ || ::fstat(file_.number(), &status) != 0) refuse_file(path_, "read", errno);
  if (const auto wrong = wrong_kind(status.st_mode); !wrong.empty()) fail(std::string(wrong));
  if (S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    inputs().add(status);
  }
  if (size_.value_or(0) > limits_.most_bytes) {
    fail(fmt::format("has {}, more than the {} that are read of such a file", format_size(*size_),
                     format_size(limits_.most_bytes)));
  }
}

bool InputFile::expired(Seconds limit) const { return Clock::now() - opened_ > limit; }

/// Waits, up to the limit, until a pipe has bytes or loses its last writer. Linux does not wake
/// poll() when a writer opens the pipe.
void InputFile::await_bytes(Seconds limit) {
  const Seconds left = limit - (Clock::now() - opened_);
  const int milliseconds = static_cast<int>(std::ceil(std::max(0.0, left.count()) * 1e3)) + 1;
  pollfd wait{.fd = file_.number(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, milliseconds) < 0 && errno != EINTR) refuse_file(path_, "read", errno);
}

/// True if an empty pipe without writers had a writer before; false if no writer has opened it yet.
bool InputFile::had_writer() const {
  pollfd now{.fd = file_.number(), .events = POLLIN, .revents = 0};
  return ::poll(&now, 1, 0) > 0 && (now.revents & POLLIN) == 0;
}

void InputFile::require_writer_in_time() const {
  if (!expired(limits_.pipe)) return;
  fail(
      fmt::format("the writer of this pipe has not finished within {}; let it write to a regular "
                  "file first, and give that",
                  format_duration(limits_.pipe.count())));
}

void InputFile::await_writer() {
  if (expired(limits_.writer)) {
    fail(
        fmt::format("no process has opened this pipe for writing within {}; start its writer "
                    "first, or give a regular file",
                    format_duration(limits_.writer.count())));
  }
  await_bytes(limits_.writer);
}

std::size_t InputFile::read(char* to, std::size_t most) {
  const bool pipe = !size_;
  while (true) {
    const ssize_t got = ::read(file_.number(), to, most);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN && !pipe) {
      fail(
          "has no end: more data may come at any time; copy the part that you need into a regular "
          "file, and give that");
    }
    if (got < 0 && errno != EAGAIN) refuse_file(path_, "read", errno);
    if (got == 0 && pipe && bytes_read_ == 0 && !had_writer()) {
      await_writer();
      continue;
    }
    if (got == 0) return 0;
    if (pipe) require_writer_in_time();
    if (got < 0) {
      await_bytes(limits_.pipe);
      continue;
    }
    bytes_read_ += got;
    if (bytes_read_ > limits_.most_bytes) {
      fail(fmt::format("has more than the {} that are read of such a file",
                       format_size(limits_.most_bytes)));
    }
    return static_cast<std::size_t>(got);
  }
}

std::string read_file(const std::string& path) { return read_file(path, ReadLimits()); }

std::string read_file(const std::string& path, const ReadLimits& limits) {
  struct stat status {};
  const auto is_pipe = [&] {
    return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  };
  if (is_pipe()) {
    if (std::optional<std::string> content = inputs().kept(status)) return *std::move(content);
  }
  InputFile file(path, limits);
  try {
    constexpr std::size_t kStep = std::size_t{64} << 10;
    std::string content;
    // One extra byte, so that the end is found without growing the buffer.
    content.resize(static_cast<std::size_t>(file.size().value_or(0)) + 1);
    std::size_t length = 0;
    while (const std::size_t got = file.read(content.data() + length, content.size() - length)) {
      length += got;
      if (length == content.size()) content.resize(std::max(2 * length, kStep));
    }
    content.resize(length);
    if (is_pipe()) inputs().keep(status, content);
    return content;
  } catch (const std::bad_alloc&) {
    throw RunError(fmt::format("{}: cannot be read: {}", path, remedy(ENOMEM)));
  }
}

std::vector<std::string> read_lines(const std::string& path) {
  constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;  // a line takes 32 bytes more in
                                                               // memory
  const std::string content = read_file(path, {.most_bytes = kMostBytes});
  refuse_kind(path, content);
  std::string_view rest = content;
  constexpr std::string_view kByteOrderMark =
      "\xef\xbb\xbf";  // some editors and spreadsheets write it
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    require_text(path, static_cast<int>(lines.size()) + 1, line);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace hipress::io
