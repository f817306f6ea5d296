#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

/// Who else could have made or changed a file or folder.
namespace hipress::io {

/// Who besides this user and root can change what has this status: "belongs to user 12, not to you
/// (user 11)", "can be written to by every user". Empty: nobody. A group of one user alone may
/// write.
std::string stranger(const struct stat& status);

/// True in a container of a user's own for the overflow user, whose the machine's root shows as: it
/// is not among the container's users.
bool is_hidden_root(uid_t user);

/// True if somebody else may have put this here for us to write to: it lies in a folder such as
/// /tmp, which everybody may write to, and belongs neither to us nor to the folder's owner. Linux
/// draws the same line with fs.protected_symlinks and fs.protected_regular, where they are on.
bool is_planted(const std::filesystem::path& path, const struct stat& status);

/// Throws InputError, for `asked_for`, if a folder of the path is somebody else's link, as
/// is_planted() says.
void refuse_planted_folders(const std::filesystem::path& folder, const std::string& asked_for);

}  // namespace hipress::io
