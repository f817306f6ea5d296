#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/descriptors.hpp"

namespace hipress::io {

/// A folder for files that are trusted because nobody but this user, or root, can have written
/// them: whatever our tools leave for themselves. Files are reached through the folder's
/// descriptor, so it stays the folder that was checked.
class PrivateFolder {
 public:
  enum class For {
    kPrograms,  ///< programs that will be run; other programs open them by name
    /// Results under names that say what they are of: a folder of ours in its place does no harm,
    /// so others may write to the folders above it.
    kResults
  };

  /// Opens the folder; if it or folders above it are missing, makes them with mode 0700. `remedy`
  /// says which folder to name instead, and how ("set HIPRESS_CACHE to a folder of yours").
  ///
  /// InputError with the remedy if the folder cannot be made, or if another user could change it:
  /// it or a folder above it belongs to neither this user nor root, or others may write to it (a
  /// folder above it may be sticky, as /tmp is); also if another user's link in such a folder leads
  /// there. A group without other members may write.
  PrivateFolder(const std::string& path, std::string remedy, For use = For::kPrograms);

  /// Absolute, without links.
  const std::string& path() const { return path_; }

  /// The whole of a file; nothing if there is none. InputError with the remedy if it is no regular
  /// file (a link is none), if another user could have written it, or if it has more than
  /// `most_bytes`; RunError if it cannot be read.
  std::optional<std::string> read(const std::string& name, std::size_t most_bytes) const;

  /// Writes files of mode 0600, each whole or not at all. Those of two processes that write the
  /// same names at a time do not mix. RunError with the reason.
  struct File {
    std::string name;
    std::string_view bytes;
  };
  void write(const std::vector<File>& files) const;

  /// Creates a file of mode 0600 for appending. Throws InputError with the reason.
  Descriptor create(const std::string& name) const;

  /// Names in the folder, sorted.
  std::vector<std::string> names() const;

  /// Throws InputError if the folder cannot be written to.
  void require_writable() const;

  /// Removes files that were last changed more than `age_s` seconds ago: what killed processes
  /// left.
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
