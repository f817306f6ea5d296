#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hipress::sim {

/// Calls work(i, job) for i of 0 … count−1, `jobs` calls at a time. `job` is below `jobs`, and one
/// thread has it at a time. Once a call has thrown, no other begins. If several calls threw, the
/// exception of the lowest i is reported: all calls before it had begun, so it depends neither on
/// the number of jobs nor on which of them is fast. If the system gives fewer threads (ulimit -u),
/// fewer do the work.
template <class Work>
void run_parallel(std::size_t count, unsigned jobs, const Work& work) {
  if (jobs <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i, 0u);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // of both below
  std::size_t failed = count;
  std::exception_ptr failure;
  const auto serve = [&](unsigned job) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i, job);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          failure = std::current_exception();
        }
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    helpers.reserve(std::min<std::size_t>(jobs, count));
    try {
      for (unsigned job = 1; job < jobs && job < count; ++job) helpers.emplace_back(serve, job);
    } catch (const std::system_error&) {
      // As many threads as the system gives do the same.
    }
    serve(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hipress::sim
