#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "casync/task_graph.hpp"
#include "io/error.hpp"
#include "sim/jitter.hpp"
#include "traces/timeline.hpp"

/// Options and result of a simulation.
namespace hipress::sim {

using casync::Picoseconds;

/// Rule by which transfers share links (docs/simulator.md).
enum class Network : std::uint8_t {
  kPort,  ///< one message at a time per egress and ingress port
  kFair,  ///< flows share links max-min fairly
};
Network parse_network(std::string_view name);  ///< InputError lists the known names
const char* to_string(Network network);

using casync::parse_transfer_order;
using casync::to_string;
using casync::TransferOrder;

struct Options {
  Network network = Network::kFair;
  TransferOrder transfer_order = TransferOrder::kReady;
  /// Host resources that computation uses; unset: those of TaskGraph::computing.
  std::optional<casync::Computing> computing = {};
  const Jitter* jitter = nullptr;  ///< null: every task takes its nominal time
  Jitter::Draws draws = {};
  bool record_timeline = false;  ///< costs 16 bytes a task
  /// Polled about every millisecond; if it returns true, simulate() throws Stopped. May be empty.
  std::function<bool()> stop = {};
};

/// Thrown if Options::stop ended a simulation.
class Stopped : public io::RunError {
 public:
  Stopped() : io::RunError("the simulation was stopped before its end") {}
};

struct Result {
  Picoseconds iteration{};  ///< end of the last task: forward + synchronisation
  /// Earliest end of Forward on a node. 0 for sharded schedules, whose forward waits for gathers.
  Picoseconds forward{};
  /// End of the last Backward. For a sharded schedule, whose computation waits for gathers: the
  /// total computation of a node, the maximum over nodes.
  Picoseconds compute{};
  std::vector<std::int64_t> bytes_sent;  ///< per node
  traces::Timeline timeline;             ///< empty unless recorded
  std::int64_t state_bytes = 0;  ///< size of the graph and the simulator's queues, without timeline
};

/// Bytes of a graph's tasks and edges in memory.
std::int64_t graph_bytes(const casync::TaskGraph& graph);

}  // namespace hipress::sim
