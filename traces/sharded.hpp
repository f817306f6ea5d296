#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/communication.hpp"
#include "traces/intervals.hpp"

/// Sharded training (FSDP, ZeRO) in traces; docs/traces.md, "Sharded training".
namespace hipress::traces {

/// Collective of a step, as the traced rank sees it.
struct StepCollective {
  CollectiveKind kind = CollectiveKind::kOther;
  std::int64_t in_elements = 0, out_elements = 0;  ///< 0: unknown
  std::string dtype = {};                          ///< "float32", or the trace's own name
  std::optional<std::int64_t> group_size = {};
  std::string group = {};              ///< name of its process group; empty: unknown
  std::optional<std::string> layer{};  ///< layer named by FSDP's range around it; "": the root
  bool of_fsdp = false;                ///< true if started in a range of FSDP
  int pass = 0;                        ///< number of backward passes before it
  bool in_backward = false;
  std::int64_t evaluation = -1;  ///< function of backward that starts it; -1: none
  std::int64_t started_ns = 0;   ///< start on the CPU
  std::optional<Interval> time = {};
  std::optional<double> exposed_s = {};
  /// Computation of backward before a reduction, in seconds, without exposed communication; empty
  /// for other kinds.
  std::optional<double> ready_s = {};
  /// Shapes of the gradients in a reduction's buffer; empty for other kinds.
  std::vector<std::vector<std::int64_t>> gradients = {};
};

/// Collectives and times of a sharded job's step, in order of start.
struct ShardedStep {
  std::vector<StepCollective> collectives = {};
  std::vector<std::optional<double>> forward_s = {};  ///< computation of forward per pass
  std::optional<double> optimizer_s = {};             ///< computation after the last reduction
  std::optional<std::int64_t> ranks = {};             ///< ranks of the job
  bool has_buckets = false;  ///< true if AccumulateGrad starts all-reduces, as in DDP
};

/// Parameters gathered together, whose gradients are reduced together.
struct ShardedLayer {
  std::string name = {};
  std::int64_t elements = 0;                              ///< elements without padding, if known
  std::vector<std::vector<std::int64_t>> gradients = {};  ///< shapes; empty: unknown
  std::string gathered_dtype = {}, reduced_dtype = {};
  int forward_gathers = 0, backward_gathers = 0;  ///< number per step
  std::int64_t gathered_bytes = 0;                ///< output of these gathers
  std::int64_t reduced_bytes = 0;                 ///< input of a step's reductions
  std::optional<double> ready_s = {};
};

/// All collectives of one kind in a step.
struct KindTotal {
  std::int64_t count = 0, bytes = 0;
  std::optional<double> time_s = {}, exposed_s = {};  ///< sums; empty: unknown
};

/// Sharding of a step.
struct Sharding {
  std::vector<ShardedLayer> layers = {};  ///< in order of reduction
  std::int64_t ranks = 0;                 ///< ranks that hold one full set of shards
  std::int64_t replicas = 1;              ///< number of such groups, which average their shards
  std::string schedule = {};              ///< input of casync::Schedule::parse()
  int passes = 1;                         ///< micro-steps
  bool reduces_once = true;               ///< true if only the last micro-step reduces
  std::optional<double> forward_s = {}, optimizer_s = {};
  KindTotal all_gather = {}, reduce_scatter = {}, all_reduce = {}, other = {};
  std::vector<std::string> assumed = {};  ///< sentences
  std::vector<Interval> times = {};       ///< times of all collectives but `other`
  std::string problem = {};               ///< reason why there are no layers; empty if there are
};

/// Sharding of a step; empty if no reduction belongs to a sharded job. If the layers of a sharded
/// step are unknown, `problem` says what is missing.
std::optional<Sharding> sharding_of(const ShardedStep& step);

/// Adds a collective of `bytes` bytes.
void add_to(KindTotal& total, const StepCollective& one, std::int64_t bytes);

}  // namespace hipress::traces
