#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "costs/collective_model.hpp"
#include "costs/profile.hpp"

namespace hipress::costs {

/// Quantity that the rows of a log measure.
enum class Measured : std::uint8_t {
  kCollective,  ///< seconds of a collective
  kBandwidth,   ///< bytes per second between two ranks, one way
  kLatency      ///< seconds of a message between two ranks, one way
};

/// Output of a run of nccl-tests, rccl-tests, the OSU micro-benchmarks or perftest.
struct BenchmarkLog {
  std::string test;  ///< "all_reduce_perf", "OSU Allgather", "perftest RDMA_Write BW"
  Measured measured = Measured::kCollective;
  Operation operation = Operation::kAllReduce;  ///< only for kCollective
  int ranks = 2;
  /// Pairs of size in bytes, which collectives count as nccl-tests do, and value; by increasing
  /// size.
  std::vector<std::pair<std::int64_t, double>> rows;
};

/// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf, their
/// OSU counterparts, osu_bw, osu_latency, ib_*_bw or ib_*_lat, with or without line prefixes of
/// mpirun or srun. `ranks` is needed for OSU's collectives, whose logs do not give it. Throws
/// InputError with file and line for a log that is truncated, incomplete, or of a different test.
BenchmarkLog read_benchmark_log(const std::string& path, std::optional<int> ranks = {});

/// Adds the log to a profile. Rows of a collective become its curve for the log's number of nodes.
/// Otherwise the link gets the bandwidth of the largest message, or the latency of the smallest.
void add_to_profile(const BenchmarkLog& log, Profile& profile);

}  // namespace hipress::costs
