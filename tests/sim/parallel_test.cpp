#include "sim/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hipress::sim {
namespace {

TEST_CASE("parallel: everything is called once, for any number of jobs") {
  for (const unsigned jobs : {0u, 1u, 3u, 64u}) {
    std::vector<std::atomic<int>> calls(20);
    std::vector<std::atomic<int>> working(std::max(jobs, 1u));
    run_parallel(calls.size(), jobs, [&](std::size_t i, unsigned job) {
      ++calls[i];
      if (++working.at(job) != 1) throw std::logic_error("two threads have one job's number");
      --working[job];
    });
    for (const std::atomic<int>& count : calls) CHECK(count.load() == 1);
  }
  run_parallel(0, 4, [](std::size_t, unsigned) { throw std::logic_error("called"); });
}

TEST_CASE("parallel: of those that fail the lowest is reported, not the first in time") {
  for (const unsigned jobs : {1u, 2u, 8u}) {
    CAPTURE(jobs);
    std::atomic<bool> another = false;
    std::atomic<std::size_t> calls = 0;
    const auto work = [&](std::size_t i, unsigned) {
      ++calls;
      if (i == 5) {
        another = true;
        throw std::runtime_error("5");
      }
      if (i == 3) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (jobs > 1 && !another && std::chrono::steady_clock::now() < deadline) {
          std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until the other exception is
                                                                     // recorded
        throw std::runtime_error("3");
      }
    };
    CHECK_THROWS_WITH(run_parallel(1000, jobs, work), "3");
    CHECK(another.load() == (jobs > 1));
    if (jobs == 1) CHECK(calls.load() == 4);  // i = 0, 1, 2 and 3
  }
}

TEST_CASE("parallel: a thread that is out of memory is the caller's error") {
  for (const unsigned jobs : {1u, 4u}) {
    const auto work = [](std::size_t i, unsigned) {
      if (i == 7) throw std::bad_alloc();
    };
    CHECK_THROWS_AS(run_parallel(100, jobs, work), std::bad_alloc);
  }
}

}  // namespace
}  // namespace hipress::sim
