#pragma once

#include <pthread.h>
#include <sched.h>

#include <stdexcept>
#include <string>

namespace hipress::profiler {

/// Binds the calling thread, and threads that it will start, to one core, as batch systems do.
inline void bind_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    throw std::runtime_error("cannot be bound to core " + std::to_string(core));
  }
}

}  // namespace hipress::profiler
