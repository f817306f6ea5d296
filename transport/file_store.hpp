#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "io/descriptors.hpp"
#include "transport/store.hpp"

namespace hipress::transport {

/// A folder that the ranks share, with a file per entry. A file appears under its name only when it
/// is complete, and never replaces another one, also on NFS. Files have mode 0600. A file is read
/// only if it is a regular file of this process's user that others may not write: only this user
/// can make one. A link, a pipe, a folder or a file of another user is an error; it is not
/// followed, waited for or read. Others who may write to the folder, or own it, can remove files,
/// and so keep the job from starting. They cannot forge files.
class FileStore : public Store {
 public:
  /// std::runtime_error that says why the folder will not do: there is none, or everybody may
  /// remove everybody's files there (write permission for all, without the sticky bit).
  explicit FileStore(const std::string& folder);

  bool add(const std::string& name, std::string_view content, Keep keep) override;
  bool removes() const override { return true; }
  void remove_own() noexcept override;
  std::string_view entries() const override { return "files"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

 private:
  /// Gives the file `temporary` its name `file`; false if that is taken.
  bool take_name(const std::string& temporary, const std::string& file) const;
  std::string path_of(const std::string& file) const { return folder_ + "/" + file; }

  const std::string folder_;
  io::Descriptor descriptor_;  ///< of the folder
  uid_t user_;                 ///< this process's, as the file system calls it
  std::vector<std::string> own_;
};

}  // namespace hipress::transport
