#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hipress::planner {

/// Calls work(i, job) for i of 0 … count−1; `job` is below `jobs` and one thread's at a time.
template <class Work>
void run_parallel(std::size_t count, unsigned jobs, const Work& work) {
  if (jobs <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i, 0u);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto serve = [&](unsigned job) {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i, job);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned job = 1; job < jobs; ++job) helpers.emplace_back(serve, job);
    serve(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace hipress::planner
