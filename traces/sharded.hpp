#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/communication.hpp"
#include "traces/intervals.hpp"

/// Sharded training (FSDP, ZeRO) in traces. See "Sharded training" in docs/traces.md.
namespace hipress::traces {

/// A collective of a step, as the traced rank sees it.
struct StepCollective {
  CollectiveKind kind = CollectiveKind::kOther;
  std::int64_t in_elements = 0, out_elements = 0;  ///< 0: unknown
  std::string dtype = {};                          ///< "float32", or the trace's own name
  std::optional<std::int64_t> group_size = {};
  std::string group = {};              ///< process group; empty: unknown
  std::optional<std::string> layer{};  ///< named by FSDP's range around it; "": the root
  bool of_fsdp = false;                ///< started in a range of FSDP
  int pass = 0;                        ///< number of backward passes before it
  bool in_backward = false;
  std::int64_t evaluation = -1;  ///< function of backward that starts it; -1: none
  std::int64_t started_ns = 0;   ///< start on the CPU
  std::optional<Interval> time = {};
  std::optional<double> exposed_s = {};
  /// For a reduction, computation time from the start of backward to its start, in seconds; exposed
  /// communication is not included.
  std::optional<double> ready_s = {};
  /// For a reduction, the shapes of the gradients in its buffer.
  std::vector<std::vector<std::int64_t>> gradients = {};
};

/// Collectives and times of a sharded job's step. Collectives are in the order of their start.
struct ShardedStep {
  std::vector<StepCollective> collectives = {};
  std::vector<std::optional<double>> forward_s = {};  ///< computation of forward in each pass
  std::optional<double> optimizer_s = {};             ///< computation after the last reduction
  std::optional<std::int64_t> ranks = {};             ///< ranks of the job
  bool has_buckets = false;  ///< AccumulateGrad starts all-reduces, as in DDP
};

/// Parameters that are gathered together, and whose gradients are reduced together.
struct ShardedLayer {
  std::string name = {};
  std::int64_t elements = 0;                              ///< elements without padding, if known
  std::vector<std::vector<std::int64_t>> gradients = {};  ///< shapes; empty: unknown
  std::string gathered_dtype = {}, reduced_dtype = {};
  int forward_gathers = 0, backward_gathers = 0;  ///< per step
  std::int64_t gathered_bytes = 0;                ///< outputs of these gathers
  std::int64_t reduced_bytes = 0;                 ///< inputs of a step's reductions
  std::optional<double> ready_s = {};
};

/// Totals of the collectives of one kind in a step.
struct KindTotal {
  std::int64_t count = 0, bytes = 0;
  std::optional<double> time_s = {}, exposed_s = {};  ///< sums; empty: unknown
};

/// Layers, schedule and collectives of a sharded step.
struct Sharding {
  std::vector<ShardedLayer> layers = {};  ///< in order of reduction
  std::int64_t ranks = 0;                 ///< ranks that hold one full set of shards
  std::int64_t replicas = 1;              ///< groups of that many ranks, which average their shards
  std::string schedule = {};              ///< for casync::Schedule::parse()
  int passes = 1;                         ///< micro-steps
  bool reduces_once = true;               ///< false if every micro-step reduces
  std::optional<double> forward_s = {}, optimizer_s = {};
  KindTotal all_gather = {}, reduce_scatter = {}, all_reduce = {}, other = {};
  std::vector<std::string> assumed = {};  ///< sentences
  std::vector<Interval> times = {};       ///< times of all collectives except `other`
  std::string problem = {};               ///< reason why there are no layers
};

/// Finds the sharding of a step; empty if no reduction belongs to a sharded job. If the layers
/// cannot be found, `problem` says what is missing.
std::optional<Sharding> sharding_of(const ShardedStep& step);

/// Adds a collective of `bytes` bytes to a total.
void add_to(KindTotal& total, const StepCollective& one, std::int64_t bytes);

}  // namespace hipress::traces
