#pragma once

#include <bit>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "casync/computing.hpp"
#include "casync/task.hpp"
#include "models/mix.hpp"

namespace hipress::casync {

/// Memory of one node that tasks read and write.
struct Buffer {
  enum class Kind : std::uint8_t {
    kSlice,     ///< a partition of a unit: fp32 values
    kMessage,   ///< written by one task, read by others
    kGathered,  ///< messages of all nodes; the buffers after it are its parts, by rank
    kFactor,    ///< an additive message; its slices travel like raw values
  };
  Kind kind = Kind::kSlice;
  std::int8_t algorithm = kRaw;  ///< encoding of its bytes; kRaw: fp32 values
  std::uint32_t node = 0;
  std::int64_t bytes = 0;            ///< maximum size
  std::uint32_t part_of = kNoIndex;  ///< buffer that contains it: kFactor or kGathered
};

/// Buffers of a task: indices into TaskGraph::buffers, or kNoIndex. A task that accumulates also
/// reads the buffer that it writes. If an AllReduce casts, it sums in the message that it writes,
/// and then fills the slice that it reads.
struct Operands {
  std::uint32_t reads = kNoIndex;
  std::uint32_t writes = kNoIndex;
};

/// Successors of tasks in compressed rows. Those of task i are `columns[starts[i]]` …
/// `columns[starts[i + 1] - 1]`, in the order in which the edges were added.
struct Edges {
  std::vector<std::uint32_t> starts;  ///< number of tasks + 1 entries
  std::vector<TaskId> columns;
};

/// An additive message of a unit. It is a unit of its own, with its own value of Task::gradient.
/// The sizes are sums over the members of the unit that it encodes.
struct Factor {
  std::uint32_t unit = 0;  ///< the unit that it encodes
  std::uint32_t stage = 0;
  std::int64_t values = 0;         ///< fp32 values, without padding
  std::int64_t elements = 0;       ///< elements of the unit
  std::int64_t element_ranks = 0;  ///< elements · rank
  std::int64_t value_ranks = 0;    ///< values · rank
  std::int64_t mean_values = 0;    ///< mean of `values` over steps
  bool operator==(const Factor&) const = default;
};

/// Division of the nodes into groups that run collectives. Every node is in one group of `nodes`
/// nodes, `stride` apart. The groups begin at nodes i · nodes · stride + j, with i = 0, 1, … and
/// 0 <= j < stride.
struct Group {
  std::uint32_t nodes = 1;
  std::uint32_t stride = 1;
  bool operator==(const Group&) const = default;
};

/// Name of the factor of a unit's stage: "fc6.weight.0".
std::string factor_name(const std::string& unit, std::uint32_t stage);

/// The graph that both the simulator and the executor run. GraphBuilder makes it. Task ids are a
/// topological order.
struct TaskGraph {
  std::vector<Task> all = {};  ///< by id
  Edges edges = {};            ///< from each task to its successors
  /// Per task: number of tasks that it waits for.
  std::vector<std::uint32_t> predecessors = {};
  std::uint32_t nodes = 0;
  /// Divisor of kDivideOwn and kDivideSum. It is `nodes`, except in measurements of what another
  /// divisor would cost.
  std::uint32_t divisor = 0;
  /// Shares of kernel classes in the model's computation (models::Model::mix).
  std::optional<models::Mix> mix = {};
  /// True if the graph holds only one node's share of the tasks, because all nodes do the same at
  /// the same time (casync/folding.hpp). For simulators only.
  bool folded = false;

  /// Load of computing tasks on their host.
  Computing computing = {};

  /// Buffers and operands: set only in graphs to run (expand_to_run()).
  std::vector<Buffer> buffers = {};
  std::vector<Operands> operands = {};  ///< per task

  /// Number of nodes whose tasks the graph holds.
  std::uint32_t representatives() const { return folded ? 1 : nodes; }
  /// The node whose resources stand for those of `node`.
  std::uint32_t representative(std::uint32_t node) const { return folded ? 0 : node; }
  /// The value of Task::gradient that stands for the first bulk group (casync/layout.hpp).
  std::uint32_t first_group = UINT32_MAX;
  /// The value of Task::gradient that stands for the first of `factors`, which are ordered by unit,
  /// then by stage.
  std::uint32_t first_factor = UINT32_MAX;
  std::vector<Factor> factors = {};
  /// Index into `factors` of a unit's first factor, for units with factors.
  std::map<std::uint32_t, std::uint32_t> staged_units = {};

  /// Groups of a sharded schedule's collectives (Task::group).
  std::vector<Group> groups = {};
  /// First value of Task::gradient that stands for parameters, which are gathered. Smaller values
  /// stand for gradients, which are reduced. UINT32_MAX unless shards travel in messages.
  std::uint32_t first_parameters = UINT32_MAX;

  /// The factor that a task sends, receives or adds up; null for other tasks.
  const Factor* factor_of(const Task& task) const {
    return task.gradient < first_factor ? nullptr : &factors[task.gradient - first_factor];
  }
  /// Factors, by stage, of an Encode or Decode with kFactors; empty for other tasks.
  std::span<const Factor> factors_of(const Task& task) const {
    return codes_factors(task) ? factors_of_unit(task.gradient) : std::span<const Factor>();
  }
  std::span<const Factor> factors_of_unit(std::uint32_t unit) const;
  /// The task's unit; for a factor's task, the unit that the factor encodes.
  std::uint32_t unit_of(const Task& task) const {
    const Factor* const factor = factor_of(task);
    return factor == nullptr ? task.gradient : factor->unit;
  }
  /// Priority per value of Task::gradient: the sooner the next forward pass needs it, the larger.
  /// Empty in graphs made by hand, where the index itself is the priority.
  std::vector<std::uint32_t> need_places = {};

  /// Priority of a task, from need_places.
  std::uint32_t need(const Task& task) const {
    return need_places.empty() ? task.gradient : need_places[task.gradient];
  }
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(all.size()); }
  const Task& operator[](TaskId id) const { return all[id]; }
  Task& operator[](TaskId id) { return all[id]; }
  /// Receiver of a Send, sender of a Recv, or the node whose ingress an AllReduce occupies.
  std::uint32_t peer(const Task& task) const {
    const std::uint32_t shift =
        task.kind == Kind::kRecv ? nodes - task.peer_offset : task.peer_offset;
    return static_cast<std::uint32_t>((std::uint64_t{task.node} + shift) % nodes);
  }
};

/// The tasks that wait for `id`.
inline std::span<const TaskId> successors(const TaskGraph& graph, TaskId id) {
  const auto& [starts, columns] = graph.edges;
  return {columns.data() + starts[id], starts[id + 1] - starts[id]};
}

/// Checks a graph that GraphBuilder made. It must have no cycle, and no negative amounts. Nodes
/// must exist. Every Send must have one Recv as successor, on the receiving node and with the same
/// bytes, and every Recv one Send. AllReduces and local tasks must match. Otherwise throws
/// std::invalid_argument that names the task at fault, or the tasks of a cycle.
void check(const TaskGraph& graph);

/// True for an Encode that divides its input by a number other than a power of two. A power of two
/// costs next to nothing: the Encode multiplies by the reciprocal, which is exact.
inline bool encodes_quotients(const Task& task, std::uint32_t divisor) {
  return task.kind == Kind::kEncode && (task.flags & kDivideOwn) != 0 &&
         !std::has_single_bit(divisor);
}

/// Bytes that a Send or a collective puts on its node's egress. This is the minimum over the
/// algorithms that a library may use: 2(N-1)/N·S for an AllReduce of S bytes, and (n-1)/n·S for a
/// collective of a group of n nodes.
inline std::int64_t bytes_sent(const TaskGraph& graph, const Task& task) {
  if (is_of_group(task)) {
    const std::int64_t nodes = graph.groups[task.group].nodes;
    return task.amount / nodes * (nodes - 1) + task.amount % nodes * (nodes - 1) / nodes;
  }
  if (task.kind != Kind::kAllReduce) return task.amount;
  const std::int64_t nodes = graph.nodes;
  return task.amount / nodes * 2 * (nodes - 1) + task.amount % nodes * 2 * (nodes - 1) / nodes;
}

/// Name of a task in messages: "Encode g3[2] on node 1". `gradient_name`, if not empty, replaces
/// "g3" (or "bulk0", for a bulk group).
std::string describe(const TaskGraph& graph, TaskId id, const std::string& gradient_name = {});

}  // namespace hipress::casync
