#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/communication.hpp"
#include "traces/intervals.hpp"

/// What a trace tells of a job that keeps shards of its parameters (FSDP, ZeRO); docs/traces.md,
/// "Sharded training".
namespace hipress::traces {

/// A collective of a step, as the rank that was traced sees it.
struct StepCollective {
  CollectiveKind kind = CollectiveKind::kOther;
  std::int64_t in_elements = 0, out_elements = 0;  ///< 0: not told
  std::string dtype = {};                          ///< "float32", or as the trace writes it
  std::optional<std::int64_t> group_size = {};
  std::string group = {};              ///< its process group's name; empty: not told
  std::optional<std::string> layer{};  ///< that a range of FSDP's around it names; "": the root
  bool of_fsdp = false;                ///< started in a range of FSDP's
  int pass = 0;                        ///< of so many backward passes before it
  bool in_backward = false;
  std::int64_t evaluation = -1;  ///< of backward, that starts it; -1: none
  std::int64_t started_ns = 0;   ///< on the CPU
  std::optional<Interval> time = {};
  std::optional<double> exposed_s = {};
  /// Of a reduction: computation of backward up to then, in seconds after the start of backward,
  /// without exposed communication.
  std::optional<double> ready_s = {};
  /// Of a reduction: the gradients that are copied into its buffer.
  std::vector<std::vector<std::int64_t>> gradients = {};
};

/// What a step of a sharded job does, in the order in which it starts it.
struct ShardedStep {
  std::vector<StepCollective> collectives = {};
  std::vector<std::optional<double>> forward_s = {};  ///< of each pass, as ready_s
  std::optional<double> optimizer_s = {};             ///< computation behind the last reduction
  std::optional<std::int64_t> ranks = {};             ///< of the job
  bool has_buckets = false;  ///< all-reduces that AccumulateGrad starts, as DDP's
};

/// Parameters that are gathered together, and whose gradients are reduced together.
struct ShardedLayer {
  std::string name = {};
  std::int64_t elements = 0;                              ///< without padding, where that is told
  std::vector<std::vector<std::int64_t>> gradients = {};  ///< shapes; none: not told
  std::string gathered_dtype = {}, reduced_dtype = {};
  int forward_gathers = 0, backward_gathers = 0;  ///< of a step
  std::int64_t gathered_bytes = 0;                ///< of all those: what comes out of them
  std::int64_t reduced_bytes = 0;                 ///< of a step's reductions: what goes in
  std::optional<double> ready_s = {};
};

/// All collectives of one kind in a step.
struct KindTotal {
  std::int64_t count = 0, bytes = 0;
  std::optional<double> time_s = {}, exposed_s = {};  ///< sums; none: not told
};

/// How a step is sharded.
struct Sharding {
  std::vector<ShardedLayer> layers = {};  ///< in the order in which they are reduced
  std::int64_t ranks = 0;                 ///< that have all shards between them
  std::int64_t replicas = 1;              ///< groups of them, whose shards are averaged
  std::string schedule = {};              ///< as casync::Schedule::parse() takes it
  int passes = 1;                         ///< micro-steps
  bool reduces_once = true;               ///< in the last of these alone
  std::optional<double> forward_s = {}, optimizer_s = {};
  KindTotal all_gather = {}, reduce_scatter = {}, all_reduce = {}, other = {};
  std::vector<std::string> assumed = {};  ///< sentences
  std::vector<Interval> times = {};       ///< of all but `other`
  std::string problem = {};               ///< why there are no layers; empty: there are
};

/// How the step is sharded; none: no reduction of it is a sharded job's. Where a step is sharded
/// and the trace does not tell its layers, `problem` says what is missing.
std::optional<Sharding> sharding_of(const ShardedStep& step);

/// Adds a collective of so many bytes.
void add_to(KindTotal& total, const StepCollective& one, std::int64_t bytes);

}  // namespace hipress::traces
