#include "io/thread_variables.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

namespace hipress::io {
namespace {

/// All variables of a library's thread are allocated with the first of them.
thread_local volatile bool is_allocated = false;

}  // namespace

void allocate_thread_variables() noexcept {
  is_allocated = true;
  (void)abi::__cxa_get_globals();
}

bool has_room_for_thread() noexcept {
  constexpr std::size_t kForVariables = std::size_t{1} << 20;
  std::size_t stack = std::size_t{8} << 20;
  if (pthread_attr_t usual; ::pthread_getattr_default_np(&usual) == 0) {
    ::pthread_attr_getstacksize(&usual, &stack);
    ::pthread_attr_destroy(&usual);
  }
  const std::size_t bytes = stack + kForVariables;
  void* const room =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

}  // namespace hipress::io
