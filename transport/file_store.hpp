#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "io/descriptors.hpp"
#include "transport/store.hpp"

namespace hipress::transport {

/// Store in a shared folder, with a file per entry. A file appears under its name only when
/// complete, and never replaces an existing file, also on NFS. Files have mode 0600. A file is read
/// only if it is a regular file of this process's user that others may not write, so only this user
/// can create one. A link, a pipe, a folder or another user's file is an error; it is not followed,
/// waited for or read. Other users who own the folder, or may write to it, can remove files and
/// thereby keep the job from starting. They cannot forge files.
class FileStore : public Store {
 public:
  /// Throws std::runtime_error with the reason if the folder is unusable: it does not exist, or
  /// everybody may remove everybody's files there (write permission for all, without the sticky
  /// bit).
  explicit FileStore(const std::string& folder);

  bool add(const std::string& name, std::string_view content, Keep keep) override;
  bool removes() const override { return true; }
  void remove_own() noexcept override;
  std::string_view entries() const override { return "files"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

 private:
  /// Gives the file `temporary` the name `file`; false if that name is taken.
  bool take_name(const std::string& temporary, const std::string& file) const;
  std::string path_of(const std::string& file) const { return folder_ + "/" + file; }

  const std::string folder_;
  io::Descriptor descriptor_;  ///< descriptor of the folder
  uid_t user_;                 ///< this process's user id as the file system sees it
  std::vector<std::string> own_;
};

}  // namespace hipress::transport
