#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <latch>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "io/thread_variables.hpp"

namespace hipress::sim {

/// Calls work(i, job) for i = 0 … count−1, at most `jobs` calls at a time. `job` is below `jobs`,
/// and differs between concurrent calls. After a call has thrown, no other begins. If several calls
/// threw, the exception of the lowest i is rethrown: all calls before it had begun, so the
/// exception depends neither on the number of jobs nor on their speed. If the system has room for
/// fewer threads (ulimit -u, memory), fewer do the work. No call begins before all threads have
/// allocated their own state.
template <class Work>
void run_parallel(std::size_t count, unsigned jobs, const Work& work) {
  if (jobs <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i, 0u);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards `failed` and `failure`
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
    const std::size_t most = std::min<std::size_t>(jobs, count) - 1;
    std::atomic<std::size_t> ready = 0;
    std::latch all_ready(1);
    std::vector<std::jthread> helpers;
    helpers.reserve(most);
    const auto help = [&](unsigned job) {
      io::allocate_thread_variables();
      ++ready;
      ready.notify_one();
      all_ready.wait();
      serve(job);
    };
    try {
      while (helpers.size() < most && io::has_room_for_thread()) {
        helpers.emplace_back(help, static_cast<unsigned>(helpers.size() + 1));
      }
    } catch (const std::system_error&) {
      // The threads that have started do all the work.
    } catch (const std::bad_alloc&) {
    }
    for (std::size_t now = ready; now < helpers.size(); now = ready) ready.wait(now);
    all_ready.count_down();
    serve(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hipress::sim
