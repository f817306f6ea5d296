#include "io/thread_variables.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>

namespace hipress::io {
namespace {

/// Variable whose first access allocates all thread-local variables of the library. It is volatile,
/// so the compiler keeps the otherwise unused store and the call.
thread_local const void* volatile exceptions = nullptr;

}  // namespace

void allocate_thread_variables() noexcept {
  exceptions = abi::__cxa_get_globals();  // libstdc++'s exception state
}

bool has_room_for_thread() noexcept {
  // Address space that glibc reserves for a thread's heap. Without it each allocation takes a page.
  constexpr std::size_t kHeap = std::size_t{64} << 20;
  std::size_t stack = std::size_t{8} << 20;
  if (pthread_attr_t usual; ::pthread_getattr_default_np(&usual) == 0) {
    ::pthread_attr_getstacksize(&usual, &stack);
    ::pthread_attr_destroy(&usual);
  }
  const std::size_t bytes = stack + kHeap;
  void* const room =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  ::munmap(room, bytes);
  return true;
}

}  // namespace hipress::io
