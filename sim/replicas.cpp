#include "sim/replicas.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace hipress::sim {
namespace {

__extension__ using Wide = __int128;

/// Calls work(0) … work(count−1), `jobs` at a time; throws what the first to fail threw.
template <class Work>
void run_parallel(std::uint32_t count, unsigned jobs, const Work& work) {
  std::atomic<std::uint32_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto serve = [&] {
    for (std::uint32_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned helper = 1; helper < std::min(jobs, count); ++helper) helpers.emplace_back(serve);
    serve();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace

Replicas run_replicas(const Scenario& scenario, const casync::TaskGraph& graph, std::uint32_t count,
                      unsigned jobs) {
  std::vector<Picoseconds> times(count);
  run_parallel(count, jobs, [&](std::uint32_t replica) {
    Scenario one = scenario;
    one.draws.replica = replica;
    times[replica] = iteration_time(one, graph);
  });
  std::sort(times.begin(), times.end());
  Wide sum = 0;
  for (const Picoseconds time : times) sum += time.count();
  const auto percentile = [&](std::uint64_t percent) {
    return times[static_cast<std::size_t>((percent * count + 99) / 100) - 1];
  };
  return {count,          Picoseconds(static_cast<std::int64_t>(sum / count)),
          percentile(10), percentile(50),
          percentile(90), percentile(99)};
}

}  // namespace hipress::sim
