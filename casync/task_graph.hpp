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

/// Memory that tasks read and write, on one node.
struct Buffer {
  enum class Kind : std::uint8_t {
    kSlice,     ///< a partition of a unit: fp32 values
    kMessage,   ///< written by one task, from which others take it
    kGathered,  ///< the messages of all nodes, which are its parts: the next buffers, by rank
    kFactor,    ///< a message that is averaged, whose slices travel as raw values do
  };
  Kind kind = Kind::kSlice;
  std::int8_t algorithm = kRaw;  ///< whose encoding its bytes are; kRaw: fp32 values
  std::uint32_t node = 0;
  std::int64_t bytes = 0;            ///< at most
  std::uint32_t part_of = kNoIndex;  ///< the factor that a slice is a part of, or what a message is
                                     ///< gathered in
};

/// What a task works on: indices into TaskGraph::buffers, or kNoIndex. A task that accumulates also
/// reads the buffer that it writes. An AllReduce that casts sums in the message that it writes, and
/// then fills the slice that it reads.
struct Operands {
  std::uint32_t reads = kNoIndex;
  std::uint32_t writes = kNoIndex;
};

/// Which tasks wait for which, as compressed rows: those that wait for task i are
/// `columns[starts[i]]` up to `columns[starts[i + 1]]`, in the order in which the edges were added.
struct Edges {
  std::vector<std::uint32_t> starts;  ///< per task, and one more
  std::vector<TaskId> columns;
};

/// An additive message of a unit, as a unit of its own: a value of Task::gradient. What depends on
/// the members' ranks is summed over them.
struct Factor {
  std::uint32_t unit = 0;  ///< the unit that it is a message of
  std::uint32_t stage = 0;
  std::int64_t values = 0;         ///< fp32, without what pads them
  std::int64_t elements = 0;       ///< of the unit
  std::int64_t element_ranks = 0;  ///< elements · rank
  std::int64_t value_ranks = 0;    ///< values · rank
  std::int64_t mean_values = 0;    ///< `values`, the mean over steps
  bool operator==(const Factor&) const = default;
};

/// How nodes form groups with collectives of their own: every node is in one group of `nodes`
/// nodes, each `stride` after the one before. The number of a group's first node is a multiple of
/// nodes · stride plus less than a stride.
struct Group {
  std::uint32_t nodes = 1;
  std::uint32_t stride = 1;
  bool operator==(const Group&) const = default;
};

/// "fc6.weight.0": what the factor of a unit's stage is called.
std::string factor_name(const std::string& unit, std::uint32_t stage);

/// The one graph that both engines run, made by GraphBuilder. Task ids are a topological order.
struct TaskGraph {
  std::vector<Task> all = {};  ///< by id
  Edges edges = {};            ///< to those that start after a task is done
  /// Per task: how many tasks it waits for.
  std::vector<std::uint32_t> predecessors = {};
  std::uint32_t nodes = 0;
  /// What kDivideOwn and kDivideSum divide by: `nodes`, unless what another number would cost is to
  /// be measured.
  std::uint32_t divisor = 0;
  /// Of the model's computation (models::Model::mix).
  std::optional<models::Mix> mix = {};
  /// Every node does the same at the same time, and the graph holds one node's share of the tasks;
  /// see casync/folding.hpp. For simulators only.
  bool folded = false;

  /// What computing tasks keep busy of their host.
  Computing computing = {};

  /// Of graphs that are made to be run (expand_to_run()); else empty.
  std::vector<Buffer> buffers = {};
  std::vector<Operands> operands = {};  ///< per task

  /// How many nodes' tasks the graph holds.
  std::uint32_t representatives() const { return folded ? 1 : nodes; }
  /// The node whose resources the tasks of `node` use.
  std::uint32_t representative(std::uint32_t node) const { return folded ? 0 : node; }
  /// The value of Task::gradient that stands for the first bulk group (casync/layout.hpp).
  std::uint32_t first_group = UINT32_MAX;
  /// The value of Task::gradient that stands for the first of `factors`, which are the stages of
  /// one unit after the other.
  std::uint32_t first_factor = UINT32_MAX;
  std::vector<Factor> factors = {};
  /// Per unit that has factors, the place of its first in `factors`.
  std::map<std::uint32_t, std::uint32_t> staged_units = {};

  /// Of sharded schedules: whose collectives there are (Task::group).
  std::vector<Group> groups = {};
  /// Of shards in messages: the value of Task::gradient from which on parameters are gathered; what
  /// is below it are gradients, which are reduced.
  std::uint32_t first_parameters = UINT32_MAX;

  /// The factor that a task moves; null if it is no task of a factor.
  const Factor* factor_of(const Task& task) const {
    return task.gradient < first_factor ? nullptr : &factors[task.gradient - first_factor];
  }
  /// The factors that an Encode or Decode is between its unit and, by stage; none of other tasks.
  std::span<const Factor> factors_of(const Task& task) const {
    return codes_factors(task) ? factors_of_unit(task.gradient) : std::span<const Factor>();
  }
  std::span<const Factor> factors_of_unit(std::uint32_t unit) const;
  /// The unit whose values a task is for.
  std::uint32_t unit_of(const Task& task) const {
    const Factor* const factor = factor_of(task);
    return factor == nullptr ? task.gradient : factor->unit;
  }
  /// Per value of Task::gradient: its place among those that the next forward pass needs, the last
  /// to be needed first. Empty, for graphs made by hand: the index itself.
  std::vector<std::uint32_t> need_places = {};

  /// The larger, the sooner the next forward pass needs it.
  std::uint32_t need(const Task& task) const {
    return need_places.empty() ? task.gradient : need_places[task.gradient];
  }
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(all.size()); }
  const Task& operator[](TaskId id) const { return all[id]; }
  Task& operator[](TaskId id) { return all[id]; }
  /// Where a Send goes or a Recv comes from, and the node whose ingress an AllReduce occupies.
  std::uint32_t peer(const Task& task) const {
    const std::uint32_t shift =
        task.kind == Kind::kRecv ? nodes - task.peer_offset : task.peer_offset;
    return static_cast<std::uint32_t>((std::uint64_t{task.node} + shift) % nodes);
  }
};

/// The tasks that wait for `id`, straight from the compressed rows.
inline std::span<const TaskId> successors(const TaskGraph& graph, TaskId id) {
  const auto& [starts, columns] = graph.edges;
  return {columns.data() + starts[id], starts[id + 1] - starts[id]};
}

/// Throws std::invalid_argument that names the culprit unless all of this holds: GraphBuilder made
/// the graph; it is acyclic (the message names the tasks of a cycle); every node exists; no amount
/// is negative; every Send has exactly one Recv as successor, on the node that it is sent to, with
/// the same bytes; every Recv has exactly one Send.
void check(const TaskGraph& graph);

/// Whether an Encode really divides what it reads: it multiplies with a power of two's reciprocal,
/// which is exact and costs next to nothing.
inline bool encodes_quotients(const Task& task, std::uint32_t divisor) {
  return task.kind == Kind::kEncode && (task.flags & kDivideOwn) != 0 &&
         !std::has_single_bit(divisor);
}

/// Bytes that a Send or a collective puts on its node's egress. For an AllReduce of S bytes these
/// are 2(N-1)/N·S whatever its algorithm, for a collective of a group of n nodes (n-1)/n·S: the
/// least with which it can be done.
inline std::int64_t bytes_sent(const TaskGraph& graph, const Task& task) {
  if (is_of_group(task)) {
    const std::int64_t nodes = graph.groups[task.group].nodes;
    return task.amount / nodes * (nodes - 1) + task.amount % nodes * (nodes - 1) / nodes;
  }
  if (task.kind != Kind::kAllReduce) return task.amount;
  const std::int64_t nodes = graph.nodes;
  return task.amount / nodes * 2 * (nodes - 1) + task.amount % nodes * 2 * (nodes - 1) / nodes;
}

/// "Encode g3[2] on node 1": how messages name a task. `gradient_name` replaces "g3" (or "bulk0",
/// for a bulk group) if not empty.
std::string describe(const TaskGraph& graph, TaskId id, const std::string& gradient_name = {});

/// Graphviz text, one cluster per node; meant for graphs of up to a few hundred tasks.
void write_dot(std::ostream& out, const TaskGraph& graph);

}  // namespace hipress::casync
