#pragma once

#include <cstdint>
#include <vector>

#include "profiler/options.hpp"

namespace hipress::profiler {

/// The machines of a job's ranks, and the cores that the ranks may use.
class Hosts {
 public:
  /// Collective in a job of processes. Ranks with the same Options::boot share a machine; a rank
  /// with an empty one counts as a machine of its own. Threads of one process share its machine.
  explicit Hosts(const Options& options);

  std::uint32_t count() const { return count_; }
  /// Number of cores that the ranks on one machine share: the minimum over machines, at least 1.
  int cores() const { return cores_; }
  /// Cores of this rank's machine that belong to this rank. A core belongs to the lowest rank that
  /// may use it, so a machine's first rank has all of them unless ranks are bound to cores.
  const std::vector<int>& own_cores() const { return own_cores_; }
  /// The lowest rank that is not on rank 0's machine; 1 if there is only one machine.
  std::uint32_t far() const { return far_; }

 private:
  std::uint32_t count_ = 1;
  int cores_ = 1;
  std::vector<int> own_cores_;
  std::uint32_t far_ = 1;
};

}  // namespace hipress::profiler
