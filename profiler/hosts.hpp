#pragma once

#include <cstdint>
#include <vector>

#include "profiler/options.hpp"

namespace hipress::profiler {

/// Which machines the ranks of a job are on, and the cores that they may use there.
class Hosts {
 public:
  /// Collective in a job of processes. Ranks that are threads of this process share its machine;
  /// one whose Options::boot is empty is taken to be on a machine of its own.
  explicit Hosts(const Options& options);

  std::uint32_t count() const { return count_; }
  /// Cores that the ranks on one machine share; on the one with the fewest, at least one.
  int cores() const { return cores_; }
  /// Of the cores of this rank's machine those that no lower rank may use, too: each core is one
  /// rank's. All of them for its first rank, unless ranks are bound to cores.
  const std::vector<int>& own_cores() const { return own_cores_; }
  /// The lowest rank on another machine than rank 0's; 1 where there is but one.
  std::uint32_t far() const { return far_; }

 private:
  std::uint32_t count_ = 1;
  int cores_ = 1;
  std::vector<int> own_cores_;
  std::uint32_t far_ = 1;
};

}  // namespace hipress::profiler
