#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

/// Checks if other users could have made or changed a file or folder.
namespace hipress::io {

/// Reason why a user other than this one and root could change a file of this status: "belongs to
/// user 12, not to you (user 11)", "can be written to by every user". Empty if no such user could.
/// A group whose only member is the owner may write.
std::string stranger(const struct stat& status);

/// True if `user` is the overflow user in a user namespace. The machine's root appears as this
/// user, because it has no number in the namespace.
bool is_hidden_root(uid_t user);

/// True if another user may have planted this path for us to write to: it is in a sticky folder
/// that everybody can write to (/tmp), and belongs neither to us nor to the folder's owner. This is
/// the rule of Linux's fs.protected_symlinks and fs.protected_regular.
bool is_planted(const std::filesystem::path& path, const struct stat& status);

/// Throws InputError about `asked_for` if a component of the path is a link that is_planted().
void refuse_planted_folders(const std::filesystem::path& folder, const std::string& asked_for);

}  // namespace hipress::io
