#include "io/ownership.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

/// True outside of user namespaces: all users of the machine are visible.
bool sees_all_users() {
  std::uint64_t inside = 0, outside = 0, count = 0;
  std::ifstream map("/proc/self/uid_map");
  if (!(map >> inside >> outside >> count)) return true;
  return inside == 0 && outside == 0 && count >= 0xffffffffu;
}

/// True for a user's private group, as many systems create it: with the user's name and no others.
bool is_private_group(gid_t group, uid_t user) {
  std::vector<char> group_text(1 << 16), user_text(1 << 16);
  struct group row {};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &row, group_text.data(), group_text.size(), &found) != 0 || !found) {
    return false;
  }
  struct passwd owner {};
  struct passwd* known = nullptr;
  if (::getpwuid_r(user, &owner, user_text.data(), user_text.size(), &known) != 0 || !known) {
    return false;
  }
  if (std::strcmp(row.gr_name, owner.pw_name) != 0) return false;
  for (char** member = row.gr_mem; *member != nullptr; ++member) {
    if (std::strcmp(*member, owner.pw_name) != 0) return false;
  }
  return true;
}

}  // namespace

bool is_hidden_root(uid_t user) {
  constexpr uid_t kOverflowUser = 65534;
  return user == kOverflowUser && !sees_all_users();
}

std::string stranger(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return fmt::format("belongs to user {}, not to you (user {})", status.st_uid, ::geteuid());
  }
  if ((status.st_mode & S_IWOTH) != 0) return "can be written to by every user";
  if ((status.st_mode & S_IWGRP) != 0 && !is_private_group(status.st_gid, status.st_uid)) {
    return fmt::format("can be written to by group {}", status.st_gid);
  }
  return "";
}

bool is_planted(const fs::path& path, const struct stat& status) {
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  struct stat around {};
  if (::stat(folder.c_str(), &around) != 0) return false;
  constexpr mode_t kShared = S_ISVTX | S_IWOTH;
  return (around.st_mode & kShared) == kShared && status.st_uid != ::geteuid() &&
         status.st_uid != around.st_uid;
}

void refuse_planted_folders(const fs::path& folder, const std::string& asked_for) {
  fs::path at;
  for (const fs::path& part : folder) {
    at /= part;
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0) return;  // neither this nor what follows exists
    if (!S_ISLNK(status.st_mode) || !is_planted(at, status)) continue;
    throw InputError(asked_for, 0,
                     fmt::format("{} is a link of another user, in a folder that everybody may "
                                 "write to; remove it, or choose another folder",
                                 quote(at.string())));
  }
}

}  // namespace hipress::io
