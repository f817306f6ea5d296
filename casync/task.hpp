#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace hipress::casync {

/// Time in whole picoseconds, up to 106 days: the only resolution of time in the project.
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// Rounds to the nearest picosecond. Uses IEEE operations only, so that all compilers agree.
constexpr Picoseconds from_seconds(double seconds) {
  return Picoseconds(static_cast<std::int64_t>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}
constexpr double to_seconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; }

/// Operation of a task. It reads and writes the slice (gradient, partition) of its node's gradient,
/// and the message of its predecessor:
///  - Forward, Backward: computation; a Backward task ends when its gradient is complete.
///  - Steps: the computation of several whole steps that neither begin nor await a synchronisation.
///  - Encode: slice -> message; with kFactors, whole gradient and means of its earlier factors ->
///    factor.
///  - Send, Recv: a message, or with `algorithm == kRaw` the slice itself, from one node to
///    another. The Recv is the successor of its Send. It takes no time: it marks the arrival. A raw
///    Recv that has a Merge as successor lands in a buffer for that Merge. Any other raw Recv lands
///    in the slice.
///  - Decode: message -> slice, which it overwrites or (kAccumulate) adds to; with kGathers, sum of
///    all nodes' messages -> slice; with kFactors, means of all factors -> whole gradient.
///  - Merge: adds a raw message to the slice.
///  - AllReduce: averages the slice over all nodes by a library's own algorithm, as stored. Unless
///    `algorithm == kRaw`, each slice is divided by N and cast (Encode) before it is summed, and
///    the sum is cast back (Decode). A collective: every node has such a task, and all nodes run
///    these tasks in the same order.
///  - LocalReduce: sums the gradient over its node's GPUs. Each GPU then works on a G-th of it.
///    LocalBroadcast: gathers these parts on all GPUs. `amount` is in bytes. (Only if nodes have
///    several GPUs; for simulators only.)
///  - AllGather: every node of a group ends with all nodes' shards. ReduceScatter: each node ends
///    with the mean of its shard. AllToAll: each node sends every other node the slice that belongs
///    to that node's shard. All three are collectives of a library among the group's nodes;
///    `amount` is the bytes of all shards. (For simulators only.)
///  - Join: does nothing. It ends when its predecessors have, and occupies no resource.
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
  kSteps,
  kAllGather,
  kReduceScatter,
  kAllToAll,
};
inline constexpr int kKinds = 15;

/// Resource of its node that a task occupies while it runs.
enum class Resource : std::uint8_t {
  kNone,
  kCompute,
  kCodec,
  kLocal,       ///< the link between the node's GPUs
  kPorts,       ///< the egress, and the peer's ingress
  kCollective,  ///< the network of the task's group; the node's collectives there share it
};

/// Properties of a kind.
struct KindRow {
  const char* name;
  Resource resource;
  const char* lane;  ///< name of the lane that shows the kind in traces
  bool from_others;  ///< true if its end depends on other nodes, too
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
    {"Steps", Resource::kCompute, "compute", false},
    {"AllGather", Resource::kCollective, "gather", true},
    {"ReduceScatter", Resource::kCollective, "reduce", true},
    {"AllToAll", Resource::kCollective, "reduce", true},
}};
constexpr const KindRow& row_of(Kind kind) { return kKindRows[static_cast<std::size_t>(kind)]; }
constexpr const char* to_string(Kind kind) { return row_of(kind).name; }  ///< "Forward" …
constexpr Resource resource_of(Kind kind) { return row_of(kind).resource; }

/// Role of an Encode in a topology. Each role has residuals and random draws of its own.
enum class Role : std::uint8_t {
  kWorker,  ///< encodes this node's own gradient
  kHop,     ///< encodes a partial sum on its way to the owner
  kServer,  ///< encodes the mean
};
const char* to_string(Role role);

/// Task::algorithm of uncompressed slices.
inline constexpr std::int8_t kRaw = -1;

/// Set of variations of a task within its kind.
enum TaskFlags : std::uint8_t {
  kNoFlags = 0,
  kAccumulate = 1,    ///< Decode: adds to the slice instead of overwriting it
  kDivideOwn = 2,     ///< the slice is divided by N (TaskGraph::divisor) before it is used; an
                      ///< Encode, or an AllReduce that casts, divides a copy
  kDivideSum = 4,     ///< the sum is complete, so the result is divided by N
  kLeader = 8,        ///< leader of a batch: does its own work and that of the members in one
                      ///< launch; `amount` is the sum
  kBatched = 16,      ///< member of a batch: its leader, a predecessor, does its work; both end
                      ///< together
  kOfLongSlice = 32,  ///< Send: the slice has kLongElements or more
  kFactors = 64,      ///< Encode, Decode: converts between a whole gradient and its factors
  kGathers = 128,     ///< Decode: overwrites the slice with the sum of all nodes' messages, added
                      ///< in the order of ranks
};
constexpr TaskFlags operator|(TaskFlags a, TaskFlags b) {
  return static_cast<TaskFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr TaskFlags operator&(TaskFlags a, TaskFlags b) {
  return static_cast<TaskFlags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr TaskFlags& operator|=(TaskFlags& a, TaskFlags b) { return a = a | b; }

/// Minimum length of slices whose messages interrupt codec tasks in the executor. On slices of that
/// length, codec tasks take much longer than a scheduler's time slice. An interrupted task loses
/// its data in the cache, but that costs less than to delay the message.
inline constexpr std::int64_t kLongElements = std::int64_t{1} << 20;

/// A vertex of the graph. It has only 32 bytes, since graphs have tens of millions of tasks.
struct Task {
  /// Encode, Decode, Merge: elements of the slice. Send, Recv: bytes on the wire. AllReduce: bytes
  /// of the slice in the type in which it is summed. LocalReduce, LocalBroadcast: bytes of the
  /// gradient. AllGather, ReduceScatter, AllToAll: bytes of all shards. Forward, Backward, Steps:
  /// picoseconds at speed 1.
  std::int64_t amount = 0;
  std::uint32_t gradient = 0;  ///< input index; a bulk group if it is at least
                               ///< TaskGraph::first_group
  std::uint32_t partition = 0;
  std::uint32_t node = 0;         ///< node that runs it
  std::uint32_t peer_offset = 0;  ///< (receiver - sender) mod N of the message that it moves, makes
                                  ///< or reads; 0 if none or several
  Kind kind = Kind::kForward;
  std::int8_t algorithm = kRaw;  ///< index into Plan::algorithms, or kRaw
  Role role = Role::kWorker;
  TaskFlags flags = kNoFlags;
  std::uint8_t stage = 0;  ///< Encode: stage of the codec whose message it makes
  std::uint8_t group = 0;  ///< AllGather, ReduceScatter, AllToAll: index into TaskGraph::groups
};
static_assert(sizeof(Task) == 32);

using TaskId = std::uint32_t;

/// Index that stands for no entry of a graph's table.
inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

/// True for a Decode of the messages of all nodes.
inline bool gathers(const Task& task) { return (task.flags & kGathers) != 0; }

/// True for an Encode or Decode that converts between a whole gradient and its factors.
inline bool codes_factors(const Task& task) { return (task.flags & kFactors) != 0; }

/// True for an AllReduce in half precision, which casts before and after the sum.
inline bool casts(const Task& task) {
  return task.kind == Kind::kAllReduce && task.algorithm != kRaw;
}

/// The Encode (kind kEncode) or Decode within an AllReduce that casts. Its number of elements is
/// half the bytes. For a slice of odd length this is one too many, since messages are padded.
inline Task cast_of(Task all_reduce, Kind kind) {
  if (kind != Kind::kEncode) all_reduce.flags = kNoFlags;
  all_reduce.kind = kind;
  all_reduce.amount /= 2;
  return all_reduce;
}

/// True if the task takes no time and no resource, and ends when its predecessors have.
inline bool is_instant(const Task& task) {
  return task.kind == Kind::kJoin || (task.flags & kBatched) != 0;
}

/// True for LocalReduce and LocalBroadcast, between the GPUs of one node.
inline bool is_local(const Task& task) { return resource_of(task.kind) == Resource::kLocal; }

/// True for AllGather, ReduceScatter and AllToAll, between the nodes of a group.
inline bool is_of_group(const Task& task) {
  return resource_of(task.kind) == Resource::kCollective;
}

/// True for Forward, Backward and Steps.
inline bool is_computation(const Task& task) {
  return resource_of(task.kind) == Resource::kCompute;
}

/// True if a Send's message interrupts codec tasks on the sender and the receiver. It does if its
/// slice is long (kLongElements), since the slices of those tasks are then long, too.
inline bool interrupts(const Task& send) { return (send.flags & kOfLongSlice) != 0; }

}  // namespace hipress::casync
