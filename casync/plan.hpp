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

/// What the expansion must know of a compression algorithm.
struct Algorithm {
  std::string name;
  /// Bytes on the wire of a slice of that many elements (at most, if it varies with the data).
  std::function<std::int64_t(std::int64_t elements)> encoded_bytes;
  /// Bytes that a graph's messages have: `share` of those, rounded up to a multiple of 4.
  std::int64_t message_bytes(std::int64_t elements) const;
  /// Decoded values are as coarse as fp16 or bf16, so sums that travel are kept in range by
  /// dividing every contribution by N first.
  bool half_precision = false;
  /// It does to a node's own gradient what an optimizer does, such as momentum, so every node's
  /// gradient has to be encoded once: Topology::Form::kEncoded.
  bool own_optimizer = false;

  /// One stage's message of an additive codec.
  struct Factor {
    std::int64_t bytes = 0;  ///< of fp32 numbers
    int rank = 0;            ///< columns
    bool additive = true;    ///< the mean of messages is the message of the mean
    /// The mean over steps, of what is not as long in every step; 0: it is.
    std::int64_t mean_bytes = 0;
  };
  /// Where messages are additive: what it sends for a gradient of those dimensions, stage by stage.
  std::function<std::vector<Factor>(std::span<const std::int64_t> shape)> stages = {};
  /// Why it does not compress a gradient of those dimensions; empty text: it does.
  std::function<std::string(std::span<const std::int64_t> shape)> refusal = {};
  /// Less than 1 only in predictions (sim/message_sizes.hpp): what is run has room for all.
  double share = 1;
  /// Messages are factors, of whole gradients: they are averaged as raw values are, and nothing on
  /// the way encodes or decodes.
  bool is_additive() const { return stages != nullptr; }
};

/// What an index into `algorithms` stands for (Decision::algorithm); null: raw. std::out_of_range
/// for an index that is none.
inline const Algorithm* algorithm_at(const std::vector<Algorithm>& algorithms, std::int8_t index) {
  return index == kRaw ? nullptr : &algorithms.at(static_cast<std::size_t>(index));
}

/// Whether factors are sent; null: raw, which has none.
inline bool is_additive(const Algorithm* algorithm) {
  return algorithm != nullptr && algorithm->is_additive();
}

/// Which message goes first of those that wait for a port.
enum class TransferOrder : std::uint8_t {
  kReady,  ///< the one that was ready first, as everything else that waits
  kNeed,   ///< the one whose gradient the next forward pass needs first
};
/// "ready" or "need"; std::invalid_argument that lists them.
TransferOrder parse_transfer_order(std::string_view name);
const char* to_string(TransferOrder order);

/// What is decided for one gradient.
struct Decision {
  std::int8_t algorithm = kRaw;  ///< index into Plan::algorithms, or kRaw
  std::int32_t partitions = 1;   ///< K: at least 1; partitions without elements make no tasks
};

/// Whether and when small things are put together: gradients into bulk groups, kernel launches into
/// batches. Going by the model's ready times, since a graph knows no clock.
struct Aggregation {
  std::int64_t threshold_bytes = 0;  ///< what is smaller is put together; larger: fewer, larger
                                     ///< messages or launches. 0: nothing is
  /// What becomes ready more than this after the first member does not join it. Larger: the first
  /// member waits longer. None: no limit.
  std::optional<Picoseconds> wait = {};
  /// What would make a group or batch larger starts the next one. None: however large.
  std::optional<std::int64_t> limit_bytes = {};
  bool operator==(const Aggregation&) const = default;
};

/// Plan::shards_by of collectives whose times a profile gives.
inline constexpr std::string_view kLibrary = "library";

/// How one model is synchronised.
struct Plan {
  std::string topology = "ps";  ///< a row of topologies()
  std::uint32_t nodes = 1;      ///< N
  /// G, the cluster's. More put a LocalReduce before each gradient's synchronisation and a
  /// LocalBroadcast behind it; of a schedule of several steps, in every step (casync/expand.cpp).
  std::uint32_t gpus_per_node = 1;
  std::vector<Algorithm> algorithms;  ///< at most 127
  std::vector<Decision> decisions;    ///< one per gradient, in input order
  std::string raw_topology = {};      ///< of raw gradients (casync::topologies_of() has the rule);
                                      ///< empty: `topology` too, or what its row says
  std::uint32_t root = 0;             ///< whose values a broadcast spreads
  Aggregation bulk = {};              ///< of gradients, by their bytes in their dtype
  /// Bulk groups made by hand: input indices. What is in none of them is grouped by `bulk`.
  std::vector<std::vector<std::uint32_t>> bulk_groups = {};
  Aggregation batch = {};  ///< of Encode, Decode and Merge tasks, by the fp32 bytes of their slice
  Schedule schedule = {};  ///< when which gradients are synchronised
  /// Of a sharded schedule: what parameters are gathered as, by the gradients' input indices, as in
  /// Decision::algorithm; empty: raw.
  std::vector<std::int8_t> gathers = {};
  std::int8_t gather_of(std::uint32_t gradient) const {
    return gathers.empty() ? kRaw : gathers.at(gradient);
  }
  /// Of a sharded schedule whose gradients are compressed: so many neighbours exchange shards
  /// first, then those of other neighbours; 1: all at once.
  std::uint32_t exchange_within = 1;
  /// Of a sharded schedule: what gathers and reduces. Either a library's collectives, or rows of
  /// topologies(): "ring" stands for ring_gather and ring_reduce_scatter. With rows, gradients that
  /// a codec other than half precision encodes go straight to the node that adds them up.
  std::string shards_by = std::string(kLibrary);
  /// Gathers and reductions are messages between nodes, which can be run.
  bool shards_in_messages() const { return shards_by != kLibrary; }
  bool pipelining = true;  ///< off: see remove_pipelining() in rewrites.hpp
};

/// What slices are a multiple of, but the last of a gradient: codecs pack 32 elements at a time.
inline constexpr std::int64_t kSliceWord = 32;

/// The elements that partition k of K covers: ceil(m/K) rounded up to a multiple of kSliceWord
/// each, the last one shorter, those behind it empty.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};
Slice slice(std::int64_t elements, std::int64_t partitions, std::int64_t k);

}  // namespace hipress::casync
