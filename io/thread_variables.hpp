#pragma once

#include <thread>
#include <utility>

namespace hipress::io {

/// Allocates this thread's variables, and what its first exception needs. Of a library that was
/// loaded by dlopen(), as Python does it, the dynamic loader otherwise allocates them at their
/// first use, and ends the process if there is no memory by then.
void allocate_thread_variables() noexcept;

/// A thread that does the work once it has its variables. std::system_error where there is none.
template <class Work>
std::thread start_thread(Work work) {
  return std::thread([work = std::move(work)] {
    allocate_thread_variables();
    work();
  });
}

/// True if there are addresses left for another thread's stack and what it allocates.
bool has_room_for_thread() noexcept;

}  // namespace hipress::io
