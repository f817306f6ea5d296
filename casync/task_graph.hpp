#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hipress::casync {

/// Time in the project's one resolution: whole picoseconds (106 days fit).
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// Rounds to the nearest picosecond. Only IEEE operations, so every compiler gives the same number.
constexpr Picoseconds from_seconds(double seconds) {
  return Picoseconds(static_cast<std::int64_t>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}
constexpr double to_seconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; }

/// What a task does. The data it acts on is the slice (gradient, partition) of its node's gradient,
/// in place, and the message of its predecessor:
///  - Forward, Backward: computation; a Backward task ends when its gradient is complete.
///  - Encode: slice -> message; of a staged codec, all of the gradient, and what has become of
///    earlier messages -> factor.
///  - Send, Recv: a message, or with `algorithm == kRaw` the slice itself, from one node to
///  another. The
///    Recv is the successor of its Send and takes no time of its own: it marks the arrival. A raw
///    Recv that has a Merge as successor lands in a buffer for it, any other raw Recv lands in the
///    slice.
///  - Decode: message -> slice, overwriting or (kAccumulate) adding to it; with kGathers, the sum
///    of all nodes' messages -> slice; of a staged codec, the means of all factors -> all of the
///    gradient.
///  - Merge: adds a raw message to the slice.
///  - AllReduce: the mean over all nodes of the slice, by a library's own algorithm; unless
///    `algorithm == kRaw`, of the slice's N-th as an Encode casts it, and cast back as by a Decode.
///    A collective: every node has such a task, and on each they follow one another in the same
///    order.
///  - LocalReduce: sums the gradient over its node's GPUs, each of which then holds a G-th of it,
///  on which it works from then on; LocalBroadcast: gathers these on all of them. (Only where nodes
///  have several; `amount` is bytes. For simulators only.)
///  - Join: nothing. It is done when its predecessors are, and occupies no resource.
enum class Kind : std::uint8_t {
  kForward,
  kBackward,
  kEncode,
  kDecode,
  kMerge,
  kSend,
  kRecv,
  kAllReduce,
  kJoin,
  kLocalReduce,
  kLocalBroadcast,
};
inline constexpr int kKinds = 11;

/// What of its node a task occupies while it runs.
enum class Resource : std::uint8_t {
  kNone,
  kCompute,
  kCodec,
  kLocal,  ///< the link between the node's GPUs
  kPorts,  ///< the egress, and the peer's ingress
};

/// All that a kind is, in one place.
struct KindRow {
  const char* name;
  Resource resource;
  const char* lane;  ///< in traces
  bool from_others;  ///< it ends when other nodes have done something, too
};
inline constexpr std::array<KindRow, kKinds> kKindRows{{
    {"Forward", Resource::kCompute, "compute", false},
    {"Backward", Resource::kCompute, "compute", false},
    {"Encode", Resource::kCodec, "codec", false},
    {"Decode", Resource::kCodec, "codec", false},
    {"Merge", Resource::kCodec, "codec", false},
    {"Send", Resource::kPorts, "egress", false},
    {"Recv", Resource::kNone, "ingress", true},
    {"AllReduce", Resource::kPorts, "egress", true},
    {"Join", Resource::kNone, "codec", false},
    {"LocalReduce", Resource::kLocal, "local", false},
    {"LocalBroadcast", Resource::kLocal, "local", false},
}};
constexpr const KindRow& row_of(Kind kind) { return kKindRows[static_cast<std::size_t>(kind)]; }
constexpr const char* to_string(Kind kind) { return row_of(kind).name; }  ///< "Forward" …
constexpr Resource resource_of(Kind kind) { return row_of(kind).resource; }

/// In which part of a strategy an Encode stands; residuals and random draws are kept apart by it.
enum class Role : std::uint8_t {
  kWorker,  ///< codes this node's own gradient
  kHop,     ///< codes a partial sum on its way
  kServer,  ///< codes the mean
};
const char* to_string(Role role);

/// Task::algorithm of what travels uncompressed.
inline constexpr std::int8_t kRaw = -1;

// Task::flags.
inline constexpr std::uint8_t kAccumulate =
    1;  ///< Decode: add to the slice instead of overwriting it
inline constexpr std::uint8_t kDivideOwn = 2;  ///< the slice is divided by TaskGraph::divisor, N,
                                               ///< before it is used; an Encode, or an AllReduce
                                               ///< that casts, divides what it reads, not the slice
inline constexpr std::uint8_t kDivideSum = 4;  ///< the result is divided by N: the sum is complete
inline constexpr std::uint8_t kLeader = 8;  ///< runs a batch: its own work and its members', in one
                                            ///< launch; `amount` is the sum
inline constexpr std::uint8_t kBatched = 16;  ///< member of a batch: its leader, a predecessor,
                                              ///< does its work, and it ends when the leader does
inline constexpr std::uint8_t kOfLongSlice = 32;  ///< Send: the slice has kLongElements or more
inline constexpr std::uint8_t kStaged = 64;       ///< Encode, Decode: of a staged codec
inline constexpr std::uint8_t kGathers = 128;  ///< Decode: overwrites the slice with the sum of all
                                               ///< nodes' messages, added in the order of ranks

/// From here on a codec task is so much longer than the turn of its thread that to be interrupted
/// by every message, at the price of its caches, is the lesser evil. The executor does so.
inline constexpr std::int64_t kLongElements = std::int64_t{1} << 20;

/// One vertex of the graph. 32 bytes, since graphs have tens of millions of them.
struct Task {
  std::int64_t amount = 0;     ///< elements of the slice (Encode, Decode, Merge), bytes on the wire
                               ///< (Send, Recv), of the slice as it is summed (AllReduce) or of
                               ///< the gradient (LocalReduce, LocalBroadcast), picoseconds at speed
                               ///< 1 (Forward, Backward)
  std::uint32_t gradient = 0;  ///< input index; from TaskGraph::first_group on, a bulk group
  std::uint32_t partition = 0;
  std::uint32_t node = 0;         ///< where it runs
  std::uint32_t peer_offset = 0;  ///< (receiver - sender) mod N of the message that the task is,
                                  ///< feeds or comes from; 0 if none or several
  Kind kind = Kind::kForward;
  std::int8_t algorithm = kRaw;  ///< index into Plan::algorithms, or kRaw
  Role role = Role::kWorker;
  std::uint8_t flags = 0;
  std::uint8_t stage = 0;  ///< Encode of a staged codec: which of its messages it makes
};
static_assert(sizeof(Task) == 32);

using TaskId = std::uint32_t;

/// "None" for places in the tables of a graph.
inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

/// Memory that tasks read and write, on one node.
struct Buffer {
  enum class Kind : std::uint8_t {
    kSlice,     ///< a partition of a unit: fp32 values
    kMessage,   ///< written by one task, from which others take it
    kGathered,  ///< the messages of all nodes, which are its parts: the next buffers, by rank
    kFactor,    ///< a message of a staged codec, whose slices travel as raw values do
  };
  Kind kind = Kind::kSlice;
  std::int8_t algorithm = kRaw;  ///< whose encoding its bytes are; kRaw: fp32 values
  std::uint32_t node = 0;
  std::int64_t bytes = 0;            ///< at most
  std::uint32_t part_of = kNoIndex;  ///< the factor that a slice is a part of, or what a message is
                                     ///< gathered in
};

/// What a task works on: indices into TaskGraph::buffers, or kNoIndex. A task that accumulates
/// reads what it writes, too; an AllReduce that casts sums in the message that it writes, and then
/// fills the slice that it reads.
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

/// A message of a unit that is compressed in stages, as a unit of its own: a value of
/// Task::gradient. What depends on the members' ranks is summed over them.
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
  /// Every node does the same at the same time, and the graph holds one node's share of the tasks;
  /// see casync/folding.hpp. For simulators only.
  bool folded = false;

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
  /// Per unit compressed in stages, its first factor's place in `factors`.
  std::map<std::uint32_t, std::uint32_t> staged_units = {};

  /// The factor that a task moves; null if it is no task of a factor.
  const Factor* factor_of(const Task& task) const {
    return task.gradient < first_factor ? nullptr : &factors[task.gradient - first_factor];
  }
  /// The factors of the unit that an Encode or Decode works on, by stage; none if it is not
  /// compressed in stages.
  std::span<const Factor> factors_of(const Task& task) const;
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

/// How much of a plan is expanded: the tasks of all nodes, or one node's share of them.
enum class Folding : std::uint8_t { kNone, kFolded };

/// What a graph can have of tasks, and of edges: 2^32 − 1, so that their numbers are 32 bits and
/// one of these means none.
inline constexpr std::size_t kMaxTasks = UINT32_MAX;

/// Collects tasks and edges in any order, then builds the compressed graph once.
class GraphBuilder {
 public:
  /// `most` is for tests of what happens beyond it.
  explicit GraphBuilder(std::uint32_t nodes, std::uint32_t first_group = UINT32_MAX,
                        Folding folding = Folding::kNone, std::size_t most = kMaxTasks)
      : nodes_(nodes),
        first_group_(first_group),
        folded_(folding == Folding::kFolded),
        most_(most) {}
  /// From now on tasks name what they work on; to be called before the first is added.
  void name_operands() { named_ = true; }
  /// Appends a task; its id is the number of tasks added before it. std::invalid_argument if there
  /// are kMaxTasks.
  TaskId add(const Task& task, const Operands& operands = {});
  // These do nothing, and return kNoIndex, where operands are not named.
  /// The buffer of a task's slice: (gradient, partition) on its node.
  std::uint32_t slice_of(const Task& task, std::int64_t bytes);
  /// All of a factor on a node; the slices of it that slice_of() makes afterwards are its parts.
  std::uint32_t factor(std::uint32_t unit, std::uint32_t node, std::int64_t bytes);
  /// A new message on a node.
  std::uint32_t message(std::uint32_t node, std::int8_t algorithm, std::int64_t bytes);
  /// Room on a node for one message of every node, of at most so many bytes each; that of rank r is
  /// gathered_part(…, r).
  std::uint32_t gathered(std::uint32_t node, std::int8_t algorithm, std::int64_t bytes);
  std::uint32_t gathered_part(std::uint32_t gathered, std::uint32_t rank) const {
    return named_ ? gathered + 1 + rank : kNoIndex;
  }
  /// What a task writes.
  std::uint32_t written_by(TaskId id) const { return named_ ? operands_[id].writes : kNoIndex; }
  /// `after` waits for `before`. std::invalid_argument if there are kMaxTasks edges.
  void edge(TaskId before, TaskId after);
  std::uint32_t nodes() const { return nodes_; }
  bool folded() const { return folded_; }
  /// As TaskGraph's.
  std::uint32_t representative(std::uint32_t node) const { return folded_ ? 0 : node; }
  TaskId size() const { return static_cast<TaskId>(tasks_.size()); }
  const Task& task(TaskId id) const { return tasks_[id]; }
  Task& task(TaskId id) { return tasks_[id]; }
  /// All edges in the order in which they were added.
  std::span<const std::pair<TaskId, TaskId>> edges() const { return edges_; }
  /// Renumbers the tasks so that ids are a topological order again after a rewrite, each as early
  /// as its old id lets it come. std::invalid_argument for a cycle.
  void sort();
  /// Builds the graph and leaves the builder empty.
  TaskGraph build() &&;

 private:
  std::uint32_t nodes_;
  std::uint32_t first_group_;
  bool folded_;
  std::size_t most_;
  std::vector<Task> tasks_;
  std::vector<std::pair<TaskId, TaskId>> edges_;
  bool named_ = false;
  std::vector<Operands> operands_;  ///< per task, if named
  std::vector<Buffer> buffers_;
  /// By unit, partition and node.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> slices_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> factors_;  ///< by unit and node
};

/// Throws std::invalid_argument that names the culprit unless: GraphBuilder made the graph, it is
/// acyclic (the message names the tasks of a cycle), every node exists, every amount is
/// non-negative, every Send has exactly one Recv as successor, on the node that it is sent to, with
/// the same bytes, and every Recv exactly one Send.
void check(const TaskGraph& graph);

/// A Decode of the messages of all nodes.
inline bool gathers(const Task& task) { return (task.flags & kGathers) != 0; }

/// An Encode or Decode of a staged codec.
inline bool is_staged(const Task& task) { return (task.flags & kStaged) != 0; }

/// An AllReduce in half precision, which casts before it sums and after.
inline bool casts(const Task& task) {
  return task.kind == Kind::kAllReduce && task.algorithm != kRaw;
}

/// The Encode (kind kEncode) or Decode that an AllReduce that casts stands for. Its elements are
/// counted by the bytes, two for each: one more than the slice has if that is odd, since messages
/// are padded.
inline Task cast_of(Task all_reduce, Kind kind) {
  all_reduce.flags = kind == Kind::kEncode ? all_reduce.flags : 0;
  all_reduce.kind = kind;
  all_reduce.amount /= 2;
  return all_reduce;
}

/// Whether an Encode really divides what it reads: it multiplies with a power of two's reciprocal,
/// which is exact and costs next to nothing.
inline bool encodes_quotients(const Task& task, std::uint32_t divisor) {
  return task.kind == Kind::kEncode && (task.flags & kDivideOwn) != 0 &&
         !std::has_single_bit(divisor);
}

/// Nothing runs: the task takes no time and no resource, and is done when its predecessors are.
inline bool is_instant(const Task& task) {
  return task.kind == Kind::kJoin || (task.flags & kBatched) != 0;
}

/// LocalReduce and LocalBroadcast: between the GPUs of one node.
inline bool is_local(const Task& task) { return resource_of(task.kind) == Resource::kLocal; }

/// Forward and Backward: what communication waits for, or hides behind.
inline bool is_computation(const Task& task) {
  return resource_of(task.kind) == Resource::kCompute;
}

/// Whether a Send's message, at both ends, interrupts codec tasks: its slice is long, and so are
/// those beside it.
inline bool interrupts(const Task& send) { return (send.flags & kOfLongSlice) != 0; }

/// Bytes that a Send or an AllReduce puts on its node's egress; an AllReduce of S bytes, whatever
/// its algorithm, 2(N-1)/N·S, the least with which it can be done.
inline std::int64_t bytes_sent(const TaskGraph& graph, const Task& task) {
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
