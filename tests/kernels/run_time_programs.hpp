#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/user/nvrtc.hpp"

/// Programs that tests compile at run time. The bundled tests run on machines without this source
/// tree, so files are found in the way in which the tools find them.
namespace hipress::kernels::testing {

/// Path of a built-in algorithm's program.
inline std::string shipped_program(const std::string& name) {
  return io::data_file("kernels/algorithms/" + name);
}
inline std::string users_program() { return io::data_file("tests/kernels/data/Spread.pse"); }

/// Cache folder of the tests, kept for their next run; not the user's own cache. Throws if it
/// belongs to a different user, because its files are executed.
inline std::string test_cache() {
  const std::string folder = (std::filesystem::temp_directory_path() /
                              ("hipress_test_cache_" + std::to_string(::getuid())))
                                 .string();
  struct stat found {};
  const bool made = ::mkdir(folder.c_str(), 0700) == 0;
  if (!made && (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
                found.st_uid != ::getuid())) {
    throw std::runtime_error(folder + " is no folder of this user; remove it, or set TMPDIR");
  }
  return folder;
}
inline void use_test_cache() { setenv("HIPRESS_CACHE", test_cache().c_str(), 1); }

/// True if the C++ compiler, which compiles a program's host code, is found; else prints a warning.
inline bool has_compiler() {
  const bool found = std::system((io::cxx_compiler() + " --version >/dev/null 2>&1").c_str()) == 0;
  if (!found) WARN("skipped: no C++ compiler '" << io::cxx_compiler() << "' on this machine");
  return found;
}

/// NVRTC; sets the tests' cache. Empty, with a warning, if NVRTC or the C++ compiler is missing.
inline std::optional<Nvrtc> find_nvrtc() {
  use_test_cache();
  if (!has_compiler()) return std::nullopt;
  try {
    return std::optional<Nvrtc>(std::in_place);
  } catch (const io::RunError& error) {
    WARN("skipped: " << error.what());
    return std::nullopt;
  }
}

}  // namespace hipress::kernels::testing
