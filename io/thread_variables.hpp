#pragma once

#include <thread>
#include <utility>

namespace hipress::io {

/// Allocates this thread's thread-local variables and exception state. Otherwise, in a library
/// loaded by dlopen(), as in Python, the loader does so at first use, and aborts if memory has run
/// out.
void allocate_thread_variables() noexcept;

/// Starts a thread that calls allocate_thread_variables() and then `work`. Throws std::system_error
/// if no thread can be started.
template <class Work>
std::thread start_thread(Work work) {
  return std::thread([work = std::move(work)] {
    allocate_thread_variables();
    work();
  });
}

/// True if the address space has room for the stack and heap of one more thread.
bool has_room_for_thread() noexcept;

}  // namespace hipress::io
