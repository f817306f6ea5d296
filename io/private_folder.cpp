#include "io/private_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "io/descriptors.hpp"
#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/interrupts.hpp"
#include "io/ownership.hpp"
#include "io/utf8.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

constexpr int kRandomBytes = 8;
constexpr const char* kRemoveIt = "remove it";

/// Creates the folder and its missing parents.
std::error_code make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path() && path.parent_path() != path) {
    if (const std::error_code above = make_folders(path.parent_path())) return above;
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return {errno, std::generic_category()};
  }
  return fs::is_directory(path, error) ? std::error_code()
                                       : std::make_error_code(std::errc::not_a_directory);
}

}  // namespace

PrivateFolder::PrivateFolder(const std::string& path, std::string remedy, For use)
    : remedy_(std::move(remedy)), use_(use) {
  refuse_planted_folders(path, path);
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (!error) error = make_folders(absolute.has_filename() ? absolute : absolute.parent_path());
  if (!error) path_ = fs::canonical(absolute, error).string();
  if (error) {
    throw InputError(path, 0,
                     fmt::format("the folder cannot be made: {}; {}", error.message(), remedy_));
  }
  const bool is_replaceable = use_ == For::kResults;
  for (fs::path above = fs::path(path_).parent_path(); !is_replaceable;
       above = above.parent_path()) {
    require_safe_owner(above.string(), true);
    if (above == above.root_path()) break;
  }
  descriptor_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!descriptor_) refuse(path_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  require_safe_owner(path_, false);
}

void PrivateFolder::refuse(const std::string& path, const std::string& what,
                           std::string_view remedy) const {
  throw InputError(fmt::format("{} {}; {}{}{}", printable_path(path), what, remedy,
                               remedy.empty() ? "" : ", or ", remedy_));
}

void PrivateFolder::require_safe_owner(const std::string& path, bool above) const {
  struct stat status {};
  const int failed =
      above ? ::lstat(path.c_str(), &status) : ::fstat(descriptor_.number(), &status);
  if (failed != 0) refuse(path, fmt::format("cannot be examined: {}", std::strerror(errno)));
  // In a sticky folder, users cannot rename or remove files of other users.
  if (above && (status.st_mode & S_ISVTX) != 0) status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};
  if (above && is_hidden_root(status.st_uid)) status.st_uid = 0;
  const std::string who = stranger(status);
  if (who.empty()) return;
  refuse(path,
         who + (use_ == For::kPrograms
                    ? ", so programs in it that would be run as you could be replaced"
                    : ", so its content may not be yours"),
         "give it to yourself alone (chown, chmod go-w)");
}

std::optional<std::string> PrivateFolder::read(const std::string& name,
                                               std::size_t most_bytes) const {
  const std::string path = path_ + "/" + name;
  const Descriptor file(
      ::openat(descriptor_.number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) refuse(path, "is a link, not a file of yours", kRemoveIt);
    throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) {
    throw RunError(fmt::format("{}: cannot be examined: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) refuse(path, "is no regular file", kRemoveIt);
  if (const std::string who = stranger(status); !who.empty()) {
    refuse(path, who + ", so it may not be yours", kRemoveIt);
  }
  std::string bytes;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(file.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (got == 0) return bytes;
    bytes.append(block.data(), static_cast<std::size_t>(got));
    if (bytes.size() > most_bytes) {
      refuse(path, fmt::format("has more than {} bytes", most_bytes), kRemoveIt);
    }
  }
}

void PrivateFolder::write(const std::vector<File>& files) const {
  // Without locks in the file system, files of several writers may mix; readers must detect that.
  while (::flock(descriptor_.number(), LOCK_EX) != 0 && errno == EINTR) {
  }
  try {
    for (const File& file : files) put(file);
  } catch (...) {
    ::flock(descriptor_.number(), LOCK_UN);
    throw;
  }
  ::flock(descriptor_.number(), LOCK_UN);
}

void PrivateFolder::put(const File& file) const {
  const std::string temporary =
      fmt::format(".{}.{}", file.name, to_hex(random_bytes(kRandomBytes)));
  DoomedFile doomed(path_ + "/" + temporary);
  const Descriptor made(::openat(descriptor_.number(), temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made || !write_all(made, file.bytes) ||
      ::renameat(descriptor_.number(), temporary.c_str(), descriptor_.number(),
                 file.name.c_str()) != 0) {
    throw RunError(fmt::format("{}/{}: cannot be written: {}; free space, or {}", path_, file.name,
                               std::strerror(errno), remedy_));
  }
  doomed.keep();
}

Descriptor PrivateFolder::create(const std::string& name) const {
  Descriptor made(::openat(descriptor_.number(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600));
  if (!made) refuse_file(path_ + "/" + name, "written", errno);
  return made;
}

std::vector<std::string> PrivateFolder::names() const {
  std::vector<std::string> names;
  std::error_code error;
  const std::string opened = fmt::format("/proc/self/fd/{}", descriptor_.number());
  for (const fs::directory_entry& entry : fs::directory_iterator(opened, error)) {
    names.push_back(entry.path().filename().string());
  }
  if (error) refuse_file(path_, "read", error.value());
  std::ranges::sort(names);
  return names;
}

void PrivateFolder::require_writable() const {
  if (::faccessat(descriptor_.number(), ".", W_OK | X_OK, AT_EACCESS) == 0) return;
  refuse_file(path_, "made a writable folder (choose another one)", errno);
}

void PrivateFolder::remove_older_than(double age_s) const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    struct stat status {};
    const std::string name = entry.path().filename().string();
    if (::fstatat(descriptor_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const double age = std::difftime(std::time(nullptr), status.st_mtime);
    if (!S_ISDIR(status.st_mode) && age > age_s) ::unlinkat(descriptor_.number(), name.c_str(), 0);
  }
}

}  // namespace hipress::io
