#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costs/collective_model.hpp"
#include "costs/profile.hpp"

namespace hipress::costs {

/// Quantity in the rows of a log.
enum class Measured : std::uint8_t {
  kCollective,  ///< seconds of a collective
  kBandwidth,   ///< bytes per second between two ranks, one way
  kLatency      ///< seconds of a message between two ranks, one way
};

/// Output of a run of nccl-tests, rccl-tests, the OSU micro-benchmarks or perftest.
struct BenchmarkLog {
  std::string test;  ///< "all_reduce_perf", "OSU Allgather", "perftest RDMA_Write BW"
  Measured measured = Measured::kCollective;
  Operation operation = Operation::kAllReduce;  ///< kCollective: the operation
  int ranks = 2;
  /// Rows as (size in bytes, value), by increasing size; sizes of collectives are counted as in
  /// nccl-tests.
  std::vector<std::pair<std::int64_t, double>> rows;
};

/// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf, their
/// OSU counterparts, osu_bw, osu_latency, ib_*_bw or ib_*_lat, also with the line prefixes of
/// mpirun and srun. `ranks` is for logs without a number of ranks: OSU's collectives. Throws
/// InputError with file and line for a log that is truncated, incomplete, or of a different test.
BenchmarkLog read_benchmark_log(const std::string& path, std::optional<int> ranks = {});

/// Adds the log to a profile. A collective's rows become the profile's curve for the log's number
/// of nodes. The bandwidth of the largest message, or the latency of the smallest, becomes the
/// link's.
void add_to_profile(const BenchmarkLog& log, Profile& profile);

}  // namespace hipress::costs
