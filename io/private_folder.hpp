#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/descriptors.hpp"

namespace hipress::io {

/// A folder whose files only this user and root can have written, such as a cache. Files are opened
/// relative to the folder's descriptor, so it cannot be swapped after the check.
class PrivateFolder {
 public:
  enum class For {
    kPrograms,  ///< programs to run, which other programs open by path
    /// Results whose names identify their content. Other users may write to the folder's parents:
    /// they could only swap in another folder of this user, which is harmless.
    kResults
  };

  /// Opens the folder, and creates it and missing parents with mode 0700. `remedy` says how to name
  /// a different folder ("set HIPRESS_CACHE to a folder of yours").
  ///
  /// Throws InputError with the remedy if the folder cannot be created, or if another user could
  /// change it: it or a parent belongs to neither this user nor root, or other users can write to
  /// it (parents may be sticky, as /tmp is), or another user's link in a sticky folder leads to it.
  /// A group whose only member is the owner may write.
  PrivateFolder(const std::string& path, std::string remedy, For use = For::kPrograms);

  /// Absolute path without links.
  const std::string& path() const { return path_; }

  /// Content of a file; nullopt if it does not exist. Throws InputError with the remedy if it is
  /// not a regular file (links are refused), if another user could have written it, or if it has
  /// more than `most_bytes`. Throws RunError if it cannot be read.
  std::optional<std::string> read(const std::string& name, std::size_t most_bytes) const;

  /// Writes files of mode 0600, each atomically. Concurrent writers of the same names do not mix
  /// their files. Throws RunError with the reason.
  struct File {
    std::string name;
    std::string_view bytes;
  };
  void write(const std::vector<File>& files) const;

  /// Creates a file of mode 0600 and opens it for appending. Throws InputError with the reason.
  Descriptor create(const std::string& name) const;

  /// Names of the folder's entries, sorted.
  std::vector<std::string> names() const;

  /// Throws InputError if the folder cannot be written to.
  void require_writable() const;

  /// Removes files older than `age_s` seconds: leftovers of killed processes.
  void remove_older_than(double age_s) const;

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& what,
                           std::string_view remedy = {}) const;
  void put(const File& file) const;
  void require_safe_owner(const std::string& path, bool above) const;

  std::string path_;
  std::string remedy_;
  For use_;
  Descriptor descriptor_;
};

}  // namespace hipress::io
