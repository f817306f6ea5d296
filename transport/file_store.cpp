#include "transport/file_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "io/descriptors.hpp"
#include "io/digest.hpp"
#include "io/interrupts.hpp"

namespace hipress::transport {
namespace {

[[noreturn]] void complain(const std::string& path, std::string_view what) {
  throw std::runtime_error(fmt::format("'{}' {}", path, what));
}

[[noreturn]] void fail(const std::string& path, std::string_view action) {
  throw_if_exhausted(errno);
  complain(path, fmt::format("cannot be {}: {}", action, std::strerror(errno)));
}

std::string file_of(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string read_all(int descriptor, const std::string& path) {
  // One byte more than allowed detects a file that is too long, including one that still grows.
  std::string content(Store::kMaxBytes + 1, '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(descriptor, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done == content.size()) {
    complain(path, fmt::format("is longer than {} bytes: no rank wrote it", Store::kMaxBytes));
  }
  content.resize(done);
  return content;
}

void require_trusted(const struct stat& status, const std::string& path, uid_t user) {
  if (!S_ISREG(status.st_mode)) complain(path, "is no regular file: no rank wrote it");
  if (status.st_uid != user) {
    complain(path, fmt::format("belongs to user {} and not to {}: no rank of this user wrote it",
                               status.st_uid, user));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    complain(path, "may be written by other users: no rank wrote it");
  }
}

}  // namespace

FileStore::FileStore(const std::string& folder)
    : folder_(folder),
      descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      user_(::geteuid()) {
  if (!descriptor_) {
    throw_if_exhausted(errno);
    if (errno == ENOENT || errno == ENOTDIR) {
      throw std::runtime_error(fmt::format("there is no folder '{}'", folder));
    }
    throw std::runtime_error(
        fmt::format("the folder '{}' cannot be opened: {}", folder, std::strerror(errno)));
  }
  struct stat status {};
  const bool known = ::fstat(descriptor_.number(), &status) == 0;
  if (known && ((status.st_mode & S_IWOTH) == 0 || (status.st_mode & S_ISVTX) != 0)) return;
  const std::string why =
      known ? fmt::format(
                  "in the folder '{}' every user may remove the files of others; make a "
                  "folder of your own in it (mkdir -m 700), or set its sticky bit (chmod "
                  "+t)",
                  folder)
            : fmt::format("the folder '{}' cannot be examined: {}", folder, std::strerror(errno));
  throw std::runtime_error(why);
}

bool FileStore::add(const std::string& name, std::string_view content, Keep /*keep*/) {
  const std::string file = file_of(name);
  if (content.size() > kMaxBytes) {
    complain(path_of(file), fmt::format("would be longer than {} bytes", kMaxBytes));
  }
  // The random name cannot be predicted, so no link can be placed there.
  const std::string temporary = fmt::format(".{}.{}", file, io::to_hex(io::random_bytes(8)));
  const io::DoomedFile doomed(path_of(temporary));
  io::Descriptor made(::openat(descriptor_.number(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made.number() < 0) fail(path_of(temporary), "made");
  struct stat status {};
  if (::fstat(made.number(), &status) != 0 || !io::write_all(made, content) || !made.close()) {
    fail(path_of(temporary), "written");
  }
  // A file server may give the file a different owner than this user, as NFS does for root.
  user_ = status.st_uid;
  if (!take_name(temporary, file)) return false;
  own_.push_back(file);
  return true;
}

bool FileStore::take_name(const std::string& temporary, const std::string& file) const {
  if (::linkat(descriptor_.number(), temporary.c_str(), descriptor_.number(), file.c_str(), 0) == 0)
    return true;
  if (errno == EEXIST) {
    // If the server's reply is lost, the client repeats the request, and the repetition fails. The
    // second link then shows that the first request succeeded.
    struct stat status {};
    return ::fstatat(descriptor_.number(), temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_nlink == 2;
  }
  const int why = errno;
  // Some file systems have no hard links.
  if (::renameat2(descriptor_.number(), temporary.c_str(), descriptor_.number(), file.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno == EEXIST) return false;
  errno = why;
  fail(path_of(file), "made");
}

std::optional<std::string> FileStore::find(const std::string& name) {
  const std::string file = file_of(name);
  const std::string path = path_of(file);
  // O_NONBLOCK: opening a pipe without a writer would block.
  const io::Descriptor found(::openat(descriptor_.number(), file.c_str(),
                                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (found.number() < 0) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) complain(path, "is a symbolic link: no rank wrote it");
    fail(path, "read");
  }
  struct stat status {};
  if (::fstat(found.number(), &status) != 0) fail(path, "read");
  require_trusted(status, path, user_);
  return read_all(found.number(), path);
}

void FileStore::remove_own() noexcept {
  // Ignore errors: the next job of this name reports a leftover file.
  for (const std::string& file : own_) ::unlinkat(descriptor_.number(), file.c_str(), 0);
  own_.clear();
}

}  // namespace hipress::transport
