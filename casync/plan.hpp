#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/schedule.hpp"
#include "casync/task_graph.hpp"

namespace hipress::casync {

/// Properties of a compression algorithm that the expansion needs.
struct Algorithm {
  std::string name;
  /// Bytes on the wire for a slice of `elements` elements. If they vary with the data, the maximum.
  std::function<std::int64_t(std::int64_t elements)> encoded_bytes;
  /// Bytes of a message in a graph: `share` · encoded_bytes(), rounded up to a multiple of 4.
  std::int64_t message_bytes(std::int64_t elements) const;
  /// True for casts to fp16 or bf16. Every contribution is divided by N before it is added, to keep
  /// partial sums in range.
  bool half_precision = false;
  /// True if the codec applies an optimizer, such as momentum, to a node's own gradient. Each
  /// gradient must then be encoded exactly once per step: Topology::Form::kEncoded.
  bool own_optimizer = false;

  /// One stage's message of an additive codec.
  struct Factor {
    std::int64_t bytes = 0;  ///< size of its fp32 values
    int rank = 0;            ///< number of columns
    bool additive = true;    ///< true if the mean of messages is the message of the mean
    /// Mean size over steps if it varies from step to step; else 0.
    std::int64_t mean_bytes = 0;
  };
  /// Factors of a gradient of shape `shape`, by stage. Null if messages are not additive.
  std::function<std::vector<Factor>(std::span<const std::int64_t> shape)> stages = {};
  /// Reason why a gradient of shape `shape` cannot be compressed; empty if it can.
  std::function<std::string(std::span<const std::int64_t> shape)> refusal = {};
  /// Ratio of the mean message size to the maximum. Below 1 only in predictions
  /// (sim/message_sizes.hpp): graphs to run reserve room for the maximum.
  double share = 1;
  /// True if messages are factors of whole gradients. Nodes average them like raw values, without
  /// decoding and encoding them on the way.
  bool is_additive() const { return stages != nullptr; }
};

/// The algorithm with that index (Decision::algorithm); null for kRaw. Throws std::out_of_range for
/// an invalid index.
inline const Algorithm* algorithm_at(const std::vector<Algorithm>& algorithms, std::int8_t index) {
  return index == kRaw ? nullptr : &algorithms.at(static_cast<std::size_t>(index));
}

/// True if the algorithm sends factors; false for null (raw).
inline bool is_additive(const Algorithm* algorithm) {
  return algorithm != nullptr && algorithm->is_additive();
}

/// Order in which messages that wait for a port are sent.
enum class TransferOrder : std::uint8_t {
  kReady,  ///< the first to be ready is sent first, as on all other resources
  kNeed,   ///< by priority: the gradient that the next forward pass needs first
};
/// Parses "ready" or "need"; throws std::invalid_argument, which lists them, for any other name.
TransferOrder parse_transfer_order(std::string_view name);
const char* to_string(TransferOrder order);

/// A plan's decision for one gradient.
struct Decision {
  std::int8_t algorithm = kRaw;  ///< index into Plan::algorithms, or kRaw
  std::int32_t partitions = 1;   ///< K: at least 1; partitions without elements make no tasks
  bool operator==(const Decision&) const = default;
};

/// Rule for the fusion of gradients into bulk groups (buckets), or of kernel launches into batches.
/// It uses the model's ready times, since a graph has no clock.
struct Aggregation {
  std::int64_t threshold_bytes = 0;  ///< items smaller than this are fused; a larger threshold
                                     ///< makes fewer, larger messages or launches; 0: no fusion
  /// Maximum time between the ready times of the first member and of any other. A larger value
  /// makes the first member wait longer. Unset: no limit.
  std::optional<Picoseconds> wait = {};
  /// Maximum size of a group or batch; a member that would exceed it starts the next one. Unset: no
  /// limit.
  std::optional<std::int64_t> limit_bytes = {};
  bool operator==(const Aggregation&) const = default;
};

/// Value of Plan::shards_by for a library's collectives, whose times a profile gives.
inline constexpr std::string_view kLibrary = "library";

/// A plan: how the gradients of one model are synchronised.
struct Plan {
  std::string topology = "ps";  ///< a row of topologies()
  std::uint32_t nodes = 1;      ///< N
  /// G. If G > 1, a LocalReduce precedes each gradient's synchronisation and a LocalBroadcast
  /// follows it. With schedules of several steps, a node's GPUs average in each step
  /// (casync/expand.cpp).
  std::uint32_t gpus_per_node = 1;
  /// Number of nodes per host. If it exceeds 1, the rings of successive partitions (topology ring)
  /// enter and leave a host by different nodes, so all network cards of the host are used. With 1,
  /// every ring leaves a host by its last node.
  std::uint32_t rails = 1;
  std::vector<Algorithm> algorithms;  ///< at most 127 algorithms
  std::vector<Decision> decisions;    ///< one per gradient, in input order
  std::string raw_topology = {};      ///< topology of raw gradients (rule: topologies_of()); empty:
                                      ///< Topology::dense of `topology` if set, else `topology`
  std::uint32_t root = 0;             ///< root of a broadcast
  Aggregation bulk = {};              ///< bulk groups; sizes in bytes of the gradients' dtype
  /// Bulk groups made by hand, as input indices. `bulk` groups all other gradients.
  std::vector<std::vector<std::uint32_t>> bulk_groups = {};
  Aggregation batch = {};  ///< batches of Encode, Decode and Merge; sizes in fp32 bytes of slices
  Schedule schedule = {};  ///< determines when each gradient is synchronised
  /// Sharded schedules: the algorithm of each gradient's parameters when they are gathered, as in
  /// Decision::algorithm, in input order. Empty: raw.
  std::vector<std::int8_t> gathers = {};
  std::int8_t gather_of(std::uint32_t gradient) const {
    return gathers.empty() ? kRaw : gathers.at(gradient);
  }
  /// Sharded schedules with compressed gradients: number of neighbours that first add up shards
  /// among themselves; groups of neighbours then exchange the sums. 1: all nodes exchange at once.
  std::uint32_t exchange_within = 1;
  /// Sharded schedules: implementation of gathers and reductions. It is kLibrary, or names rows of
  /// topologies(): "ring" stands for ring_gather and ring_reduce_scatter. With rows, gradients in
  /// codecs other than half precision are sent directly to the node that adds them up.
  std::string shards_by = std::string(kLibrary);
  /// True if gathers and reductions are messages between nodes. Only such plans can be run.
  bool shards_in_messages() const { return shards_by != kLibrary; }
  bool pipelining = true;  ///< if false, see remove_pipelining() in rewrites.hpp
};

/// Granularity of slices, except the last, in elements: codecs pack 32 elements at a time.
inline constexpr std::int64_t kSliceWord = 32;

/// The smallest multiple of `multiple` (> 0) that is not below `value` (>= 0).
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The elements that partition k of K covers. A slice has ceil(elements/K) elements, rounded up to
/// a multiple of kSliceWord. The last slice that has elements may be shorter; the slices after it
/// are empty.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};
Slice slice(std::int64_t elements, std::int64_t partitions, std::int64_t k);

}  // namespace hipress::casync
