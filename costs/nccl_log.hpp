#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costs/collective_model.hpp"
#include "costs/profile.hpp"

namespace hipress::costs {

/// Measurements of a run of nccl-tests or rccl-tests.
struct NcclLog {
  std::string test;  ///< its program: "all_reduce_perf"
  Operation operation = Operation::kAllReduce;
  int ranks = 0;
  /// Bytes as nccl-tests count them and seconds out of place, by increasing size.
  std::vector<std::pair<std::int64_t, double>> times;
};

/// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf or alltoall_perf, also
/// with the prefixes that mpirun and srun put before lines. InputError with file and line for one
/// that was cut short, that does not say its ranks, or of another test.
NcclLog read_nccl_log(const std::string& path);

/// Makes what was measured the profile's collective of so many nodes: a curve through its points.
void add_to_profile(const NcclLog& log, Profile& profile);

}  // namespace hipress::costs
