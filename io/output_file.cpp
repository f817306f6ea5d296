// Implements write_file, make_folder and require_writable of io/file.hpp.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <thread>

#include "io/descriptors.hpp"
#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/interrupts.hpp"
#include "io/ownership.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

/// Throws the error for a path that cannot be written to.
[[noreturn]] void refuse(const std::string& path, int error_number) {
  switch (error_number) {
    case ENAMETOOLONG:
      refuse_file(path, "written (give a shorter name)", error_number);
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
      refuse_file(path, "written (choose a folder that exists and is writable)", error_number);
    default:
      refuse_file(path, "written", error_number);
  }
}

/// Throws RunError for a result that could not be written.
[[noreturn]] void fail(const std::string& path, int error_number) {
  const char* advice = remedy(error_number);
  throw RunError(fmt::format("{}: cannot be written: {}{}{}", path, std::strerror(error_number),
                             advice ? ": " : "", advice ? advice : ""));
}

/// Stream buffer that writes to a descriptor, and throws RunError as soon as a write fails.
class DescriptorBuffer : public std::streambuf {
 public:
  /// `path` is for messages.
  DescriptorBuffer(int number, const std::string& path) : number_(number), path_(path) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }

 protected:
  int_type overflow(int_type byte) override {
    hand_over();
    if (!traits_type::eq_int_type(byte, traits_type::eof())) sputc(traits_type::to_char_type(byte));
    return traits_type::not_eof(byte);
  }
  int sync() override {
    hand_over();
    return 0;
  }

 private:
  void hand_over() {
    const char* at = pbase();
    while (at < pptr()) {
      const ssize_t written = ::write(number_, at, static_cast<std::size_t>(pptr() - at));
      if (written >= 0) {
        at += written;
      } else if (errno != EINTR) {
        fail(path_, errno);
      }
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }

  const int number_;
  const std::string& path_;
  std::array<char, std::size_t{64} << 10> buffer_;
};

/// Fills an open file, and checks that every byte was written.
void fill(Descriptor file, const std::function<void(std::ostream&)>& write,
          const std::string& path) {
  DescriptorBuffer buffer(file.number(), path);
  std::ostream stream(&buffer);
  // Otherwise the stream swallows exceptions of its buffer (std::bad_alloc), and the file is short.
  stream.exceptions(std::ios::badbit);
  write(stream);
  stream.flush();
  if (!stream) throw RunError(path + ": cannot be written: its content could not be made");
  if (!file.close()) fail(path, errno);
}

/// Status of the path itself, links not followed; empty if nothing is there. Messages name
/// `asked_for`.
std::optional<struct stat> look_at(const fs::path& path, const std::string& asked_for) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) refuse(asked_for, errno);
    return std::nullopt;
  }
  if (is_planted(path, status)) {
    throw InputError(asked_for, 0,
                     fmt::format("{} belongs to another user, in a folder that everybody may write "
                                 "to; remove it, or choose another folder",
                                 S_ISLNK(status.st_mode) ? "this link" : "this file"));
  }
  return status;
}

/// Destination of a write.
struct Target {
  std::string path;                     ///< path whose last component is not a link
  std::optional<struct stat> replaced;  ///< empty: the file does not exist yet
};

/// Follows symbolic links at the end of `path`, also to a file that does not exist yet.
Target follow_links(const std::string& path) {
  constexpr int kMaxLinks = 40;  // Linux's own limit
  if (path.empty()) throw InputError("the name of a file to write is empty; give one");
  fs::path at = path;
  for (int links = 0;; ++links) {
    const std::optional<struct stat> status = look_at(at, path);
    if (!status || !S_ISLNK(status->st_mode)) return {at.string(), status};
    std::error_code error;
    // Links in /proc to pipes name no path, so only the kernel can follow them.
    struct stat behind {};
    if (::stat(at.c_str(), &behind) == 0 && !S_ISREG(behind.st_mode)) return {at.string(), behind};
    const fs::path target = fs::read_symlink(at, error);
    if (error || links == kMaxLinks) {
      refuse(path, error ? error.value() : ELOOP);
    }
    at = at.parent_path() / target;
  }
}

/// The file that a write to `path` creates, replaces or, for devices and pipes (/dev/stdout),
/// fills.
Target find_target(const std::string& path) {
  refuse_planted_folders(fs::path(path).parent_path(), path);
  Target target = follow_links(path);
  const mode_t mode = target.replaced ? target.replaced->st_mode : S_IFREG;
  if (S_ISDIR(mode) || path.ends_with('/')) {
    throw InputError(path, 0, "is a folder, give the name of a file");
  }
  if (S_ISSOCK(mode) || S_ISBLK(mode)) {
    throw InputError(path, 0, "is a socket or a disk, give the name of a file");
  }
  // Without this check, replacing a read-only file would succeed.
  if (target.replaced && ::access(target.path.c_str(), W_OK) != 0) {
    refuse_file(path, "written (make the file writable, or choose another name)", errno);
  }
  return target;
}

bool is_replaced_whole(const Target& target) {
  return !target.replaced || S_ISREG(target.replaced->st_mode);
}

/// Unpredictable name in the folder of `path` that is short enough for every file system.
std::string temporary_name(const std::string& path) {
  const std::string name = ".hipress." + to_hex(random_bytes(16)) + ".tmp";
  return (fs::path(path).parent_path() / name).string();
}

/// Creates a file. If it replaces one, it takes that one's mode and, where permitted, its owner.
Descriptor create(const std::string& path, const Target& target, const std::string& asked_for) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr mode_t kNew = 0666, kPrivate = 0600;
  Descriptor file(::open(path.c_str(), kFlags, target.replaced ? kPrivate : kNew));
  if (!file) refuse(asked_for, errno);
  if (target.replaced) {
    const struct stat& old = *target.replaced;
    // Only root may change the owner; other users may choose one of their groups.
    if (::fchown(file.number(), old.st_uid, old.st_gid) != 0) {
      (void)!::fchown(file.number(), static_cast<uid_t>(-1), old.st_gid);
    }
    constexpr mode_t kPermissions = 0777;
    if (::fchmod(file.number(), old.st_mode & kPermissions) != 0) fail(asked_for, errno);
  }
  return file;
}

/// Opens a device or pipe. Waits up to kPatience for a pipe's reader.
Descriptor open_to_fill(const Target& target, const std::string& asked_for) {
  using namespace std::chrono_literals;
  constexpr auto kPatience = 10s;
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
    Descriptor file(::open(target.path.c_str(), flags));
    if (file) {
      ::fcntl(file.number(), F_SETFL, 0);  // only open() had to be non-blocking
      return file;
    }
    if (errno != ENXIO) refuse(asked_for, errno);
    if (std::chrono::steady_clock::now() - start > kPatience) {
      throw RunError(asked_for +
                     ": cannot be written: no process reads this pipe; start its reader first");
    }
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const Target target = find_target(path);
  if (!is_replaced_whole(target)) return fill(open_to_fill(target, path), write, path);
  DoomedFile temporary(temporary_name(target.path));
  fill(create(temporary.path(), target, path), write, path);
  if (std::rename(temporary.path().c_str(), target.path.c_str()) != 0) fail(path, errno);
  temporary.keep();
}

void make_folder(const std::string& folder) {
  refuse_planted_folders(folder, folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    error = {errno, std::generic_category()};
  }
  if (error) refuse_file(folder, "made a writable folder (choose another one)", error.value());
}

void require_writable(const std::string& path) {
  const Target target = find_target(path);
  if (!is_replaced_whole(target)) return;
  // Only creating a file shows whether a folder is writable.
  const DoomedFile probe(temporary_name(target.path));
  create(probe.path(), target, path);
}

}  // namespace hipress::io
