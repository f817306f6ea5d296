#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "costs/all_reduce.hpp"
#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "io/error.hpp"
#include "sim/jitter.hpp"
#include "traces/timeline.hpp"

namespace hipress::sim {

using casync::Picoseconds;

/// How transfers share links; see docs/simulator.md.
enum class Network : std::uint8_t {
  kPort,  ///< one message at a time per egress and ingress port
  kFair,  ///< flows share links max-min
};
Network parse_network(std::string_view name);  ///< InputError that lists the names
const char* to_string(Network network);

using casync::parse_transfer_order;
using casync::to_string;
using casync::TransferOrder;

/// Costs of the tasks of one plan's graphs, looked up once: by kind and by index into
/// Plan::algorithms.
class TaskCosts {
 public:
  /// InputError if the profile lacks one of the plan's algorithms.
  TaskCosts(const costs::Profile& profile, const std::vector<casync::Algorithm>& algorithms);
  /// Time of an Encode, Decode or Merge of `task.amount` elements alone on its codec stream, cut
  /// among that many GPUs that work at once; `divisor` is the graph's. A batched one costs nothing,
  /// its leader what all of the batch does.
  Picoseconds codec_time(const casync::Task& task, std::uint32_t divisor,
                         std::uint32_t gpus = 1) const;
  /// Time of an Encode or Decode of a staged codec, for whose unit `factors` stand. InputError if
  /// the profile does not say what the algorithm's stages cost.
  Picoseconds stage_time(const casync::Task& task, std::span<const casync::Factor> factors) const;
  /// Time of an AllReduce over `nodes` nodes with nothing else on that link: the library's for the
  /// task's bytes, and where it casts, an encode before and a decode after at compute speed 1, each
  /// cut among that many GPUs.
  Picoseconds all_reduce_time(const casync::Task& task, std::uint32_t nodes,
                              const costs::LinkCosts& link, std::uint32_t gpus = 1) const;

 private:
  std::vector<costs::CodecCosts> codecs_;
  costs::Curve merge_;
  costs::AllReduceCosts all_reduce_;
};

/// Whether backward keeps a core of a shared host busy (a CPU that computes) or not (a GPU does).
enum class BackwardCores : std::uint8_t { kNone, kOne };

struct Options {
  Network network = Network::kFair;
  TransferOrder transfer_order = TransferOrder::kReady;
  BackwardCores backward_cores = BackwardCores::kNone;
  const Jitter* jitter = nullptr;  ///< null: every task takes its nominal time
  Jitter::Draws draws = {};
  bool record_timeline = false;  ///< costs 16 bytes a task
  /// Asked every millisecond or so: true ends the simulation with Stopped. May be empty.
  std::function<bool()> stop = {};
};

/// A simulation was ended from outside.
class Stopped : public io::RunError {
 public:
  Stopped() : io::RunError("the simulation was stopped before its end") {}
};

struct Result {
  Picoseconds iteration{};               ///< the last task's end: forward + synchronisation
  Picoseconds forward{};                 ///< the first Forward's end: some node starts backward
  Picoseconds compute{};                 ///< the last Backward's end
  std::vector<std::int64_t> bytes_sent;  ///< per node
  traces::Timeline timeline;             ///< empty unless recorded
  std::int64_t state_bytes = 0;  ///< of the graph and the simulator's queues, without timeline
};

/// Longest time that one task may take, jitter included: 1e6 s. Beyond it a cost is a mistake, and
/// sums would leave 64 bits.
inline constexpr double kLongest_s = 1e6;
inline constexpr std::int64_t kLongest_ps = 1'000'000'000'000'000'000;

/// Bytes of a graph's tasks and edges in memory.
std::int64_t graph_bytes(const casync::TaskGraph& graph);

/// Runs in virtual time a graph that casync::check() accepts, as it does what is expanded from
/// plans (here a Send without a Recv would end unnoticed). Deterministic to the byte. Throws
/// io::InputError for costs that are impossible (zero bandwidth, negative latency, NaN), a task of
/// more than kLongest_s and a run of more than 53 days, and io::RunError that names up to ten stuck
/// tasks and what they wait for if the graph cannot finish, and Stopped where Options::stop says
/// so.
Result simulate(const casync::TaskGraph& graph, const TaskCosts& costs,
                const costs::Cluster& cluster, const Options& options = {});

}  // namespace hipress::sim
