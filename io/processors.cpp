#include "io/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <thread>

namespace hipress::io {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  // The kernel refuses a set for fewer cores than it was built for.
  constexpr std::size_t kMaxSets = 64;
  for (std::size_t count = 1; count <= kMaxSets; count *= 2) {
    std::vector<cpu_set_t> sets(count);
    const std::size_t bytes = count * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, sets.data()) != 0) continue;
    const int bits = static_cast<int>(count) * CPU_SETSIZE;
    for (int core = 0; core < bits; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, sets.data())) cores.push_back(core);
    }
    return cores;
  }
  cores.resize(std::max(1u, std::thread::hardware_concurrency()));
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

}  // namespace hipress::io
