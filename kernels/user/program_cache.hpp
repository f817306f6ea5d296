#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/private_folder.hpp"

namespace hipress::kernels {

/// The folder that "kernels/…" is included from; absolute.
std::string include_root();

/// What is compiled from `inputs` (code, compiler, flags) and the headers of kernels/: the SHA-256
/// of them all as 64 hex digits.
std::string program_key(const std::vector<std::string>& inputs);

/// Compiled programs in io::cache_folder(), which nobody but this user and root can have written.
/// Beside each one lies a manifest with the SHA-256 of its sources and of the program itself. A
/// program is read into memory once and verified there. Callers run that copy, so a later change to
/// the file has no effect.
class ProgramCache {
 public:
  /// io::InputError with the remedy as io::PrivateFolder.
  ProgramCache();

  /// The program of that key, verified. Nothing if there is none, or if the program or its manifest
  /// is damaged or belongs to something else; the caller then compiles it again. `ending` is ".so"
  /// or ".cubin". Refuses what io::PrivateFolder::read refuses.
  std::optional<std::string> find(const std::string& key, const std::string& ending) const;

  /// Several processes may keep the same program at a time.
  void keep(const std::string& key, const std::string& ending, std::string_view program) const;

  /// A folder for the compiler's files. What killed compilers left there is removed in time.
  const io::PrivateFolder& work() const { return work_; }

 private:
  io::PrivateFolder folder_;
  io::PrivateFolder work_;
};

}  // namespace hipress::kernels
