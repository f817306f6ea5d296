#include "sim/replicas.hpp"

#include <algorithm>

#include "sim/parallel.hpp"

namespace hipress::sim {
namespace {

__extension__ using Sum128 = __int128;

}  // namespace

Replicas run_replicas(const Scenario& scenario, const casync::TaskGraph& graph, std::uint32_t count,
                      unsigned jobs) {
  std::vector<Picoseconds> times(count);
  run_parallel(count, jobs, [&](std::size_t replica, unsigned) {
    Scenario one = scenario;
    one.draws.replica = static_cast<std::uint32_t>(replica);
    times[replica] = iteration_time(one, graph);
  });
  std::sort(times.begin(), times.end());
  Sum128 sum = 0;
  for (const Picoseconds time : times) sum += time.count();
  const auto percentile = [&](std::uint64_t percent) {
    return times[static_cast<std::size_t>((percent * count + 99) / 100) - 1];
  };
  return {count,          Picoseconds(static_cast<std::int64_t>(sum / count)),
          percentile(10), percentile(50),
          percentile(90), percentile(99)};
}

}  // namespace hipress::sim
