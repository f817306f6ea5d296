#include "io/memory_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/error.hpp"

namespace hipress::io {
namespace {

[[noreturn]] void complain(int error) {
  const char* const remedy =
      error == EMFILE || error == ENFILE ? "allow more open files (ulimit -n)"
      : error == ENOMEM || error == ENOSPC
          ? "free memory"
          : "see that the sandbox and the setting vm.memfd_noexec allow memfd_create";
  throw RunError(
      fmt::format("a file in memory cannot be made: {}; {}", std::strerror(error), remedy));
}

}  // namespace

MemoryFile::MemoryFile(std::string_view bytes)
    : descriptor_(::memfd_create("hipress", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!descriptor_) complain(errno);
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (!write_all(descriptor_, bytes) || ::lseek(descriptor(), 0, SEEK_SET) != 0 ||
      ::fcntl(descriptor(), F_ADD_SEALS, kSeals) != 0) {
    complain(errno);
  }
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", descriptor()); }

}  // namespace hipress::io
