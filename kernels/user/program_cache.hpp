#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/private_folder.hpp"

namespace hipress::kernels {

/// Absolute path of the folder from which programs include "kernels/…".
std::string include_root();

/// Cache key: SHA-256, as 64 hex digits, of `inputs` (code, compiler, flags) and the headers of
/// kernels/.
std::string program_key(const std::vector<std::string>& inputs);

/// Cache of compiled programs in io::cache_folder(), which only this user and root can write.
/// Beside each program lies a manifest with the SHA-256 of its sources and of the program itself. A
/// program is read into memory once and verified there. Callers run that copy, so a later change to
/// the file has no effect.
class ProgramCache {
 public:
  /// Throws io::InputError, with the remedy, as io::PrivateFolder does.
  ProgramCache();

  /// Reads and verifies the program of a key. Empty if it is missing, or if the program or its
  /// manifest is damaged or belongs to a different key; the caller then compiles it again. `ending`
  /// is ".so" or ".cubin". Refuses the files that io::PrivateFolder::read refuses.
  std::optional<std::string> find(const std::string& key, const std::string& ending) const;

  /// Stores a program. Several processes may store the same one at the same time.
  void keep(const std::string& key, const std::string& ending, std::string_view program) const;

  /// Folder for the compiler's files. Files left by killed compilers are removed later.
  const io::PrivateFolder& work() const { return work_; }

 private:
  io::PrivateFolder folder_;
  io::PrivateFolder work_;
};

}  // namespace hipress::kernels
