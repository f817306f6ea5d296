#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/plan.hpp"
#include "casync/topology_model.hpp"
#include "models/model.hpp"

namespace hipress::casync {

/// Result that a topology brings about for a unit's values on all nodes.
enum class Operation : std::uint8_t {
  kMean,           ///< every node ends with the mean of all
  kBroadcast,      ///< every node ends with the root's
  kReduceScatter,  ///< node k of N ends with the mean of partitions k, k + N …, its shard
  kGather,         ///< every node ends with all shards, partition k as node k of them has it
};
const char* to_string(Operation operation);  ///< "mean" …

/// The nodes between which a unit is synchronised: `first` and every `stride`-th after it, `nodes`
/// in all. They scatter or gather only the partitions that they have in common: those with a number
/// k ≡ `first` (mod `stride`).
struct Ranks {
  std::uint32_t first = 0;
  std::uint32_t nodes = 0;  ///< 0: all of the graph's
  std::uint32_t stride = 1;
};

/// One unit to synchronise, as a topology sees it.
struct UnitWork {
  std::uint32_t unit = 0;       ///< Task::gradient: input index g, or a bulk group's
  std::int64_t elements = 0;    ///< m
  std::int32_t partitions = 1;  ///< K
  std::int8_t algorithm_index = kRaw;
  const Algorithm* algorithm = nullptr;  ///< null: raw fp32
  std::uint32_t root = 0;                ///< of an operation that has one
  Ranks ranks = {};
  std::uint32_t within = 1;   ///< of a reduction in two levels: neighbours who add up first
  bool divided = false;       ///< a sum is wanted: what is added was divided by N before
  bool as_stored = false;     ///< its gradients lie in the half precision in which they are sent
  std::vector<TaskId> ready;  ///< per node: the task after which the gradient is complete there
};

/// A way of doing an operation. Adding one is one file that defines a row, and its place in
/// topologies(). What a row leaves out is never guessed: without `rotates` its graphs are not
/// folded, without `coarse` plans are searched by exact simulations alone, and without `bound`
/// there is no lower bound.
struct Topology {
  std::string_view name;
  std::string_view help;
  /// Appends the tasks of one unit, predecessors before successors, and behind each task the edges
  /// into it.
  void (*expand)(GraphBuilder& builder, const UnitWork& work);
  /// How many that are for each partition that has elements, without making them.
  double (*tasks_per_partition)(double nodes, bool compressed);
  Operation operation = Operation::kMean;
  enum class Form : std::uint8_t {
    kAny,
    kWhole,    ///< values are added as they lie, raw or in half precision, by a library, and K is 1
               ///< whatever the plan says; it needs neither `coarse` nor `bound`
    kEncoded,  ///< messages alone, which no node adds up on the way: raw values, factors and those
               ///< in half precision go by `dense`
  };
  Form form = Form::kAny;
  /// How often a node's values are encoded on their longest way into the mean, each time from what
  /// was decoded before. Null: once a hop, as in a ring.
  int (*encodings)(std::uint32_t nodes) = nullptr;
  /// Rotating the nodes by one makes partition k of what a node does partition k+1 of what the next
  /// node does (casync/folding.hpp).
  bool rotates = false;
  AddCoarsePattern coarse = nullptr;
  const BoundTerms* bound = nullptr;
  /// Of a broadcast: nodes on the way encode anew, so that with a lossy codec receivers may end
  /// with different bits.
  bool recodes = false;
  /// Of a broadcast: what it takes at the least, from when the root's unit is ready until every
  /// node has all slices. Null: nothing is known, and all chunk counts are simulated.
  double (*spread)(const Slices& slices, const Wire& wire) = nullptr;
  /// Of the form kEncoded: what carries everything else, unless the plan says it.
  std::string_view dense = {};

  int encodings_of(std::uint32_t nodes) const {
    return encodings != nullptr ? encodings(nodes) : static_cast<int>(nodes);
  }
  bool has_coarse() const { return coarse != nullptr || form == Form::kWhole; }
  bool has_bound() const { return bound != nullptr || form == Form::kWhole; }
};

/// All rows, the project's own first.
std::span<const Topology* const> topologies();

/// Built-in rows: the table in topologies/.
std::span<const Topology* const> own_topologies();

/// Topologies of a plan: of compressed gradients, and of raw ones.
struct TopologyPair {
  const Topology* encoded = nullptr;
  const Topology* raw = nullptr;
  /// What carries a gradient that is compressed so; null: raw, as factors go, too.
  const Topology& of(const Algorithm* algorithm) const;
  /// How often a gradient is then encoded on its way: factors, which travel as raw values do, once.
  int encodings_of(const Algorithm& algorithm, std::uint32_t nodes) const;
};
/// The pair of a plan with Plan::topology and Plan::raw_topology, which may be empty.
/// std::invalid_argument for an unknown name.
TopologyPair topologies_of(std::string_view topology, std::string_view raw_topology);

/// Those of an operation.
std::vector<const Topology*> topologies_for(Operation operation);

/// "ps, ring, allreduce": for help and messages.
std::string topology_names(Operation operation);

/// A row of somebody else's, among topologies() for as long as this lives. Not to be made or
/// destroyed while another thread looks. std::invalid_argument for a name that there is.
class TopologyRegistration {
 public:
  explicit TopologyRegistration(const Topology& topology);
  ~TopologyRegistration();
  TopologyRegistration(const TopologyRegistration&) = delete;
  TopologyRegistration& operator=(const TopologyRegistration&) = delete;

 private:
  const Topology* topology_;
};

/// The row of a mean or a broadcast with that name, in any case ("PS", "ring");
/// std::invalid_argument that lists the names.
const Topology& find_topology(std::string_view name);

/// The row of an operation on shards for a Plan::shards_by other than kLibrary: "ring" and kGather
/// are ring_gather. std::invalid_argument that lists what there is.
const Topology& find_topology(std::string_view shards_by, Operation operation);

/// A Plan::shards_by, from what may be in any case. std::invalid_argument as find_topology().
std::string known_shards_by(std::string_view text);

/// Expands a plan to the graph of one iteration. Every node has Forward, which is all computation
/// before the last backward (models::before_backward_s), then the gradients' Backward tasks in
/// order of their ready times, and behind them the tasks that the topology adds. Throws
/// std::invalid_argument as make_layout(), and for a folded graph of a plan that `foldable` calls
/// impossible.
TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding = Folding::kNone);

/// The same, with tasks that name the memory that they work on. Throws as expand().
TaskGraph expand_to_run(const models::Model& model, const Plan& plan,
                        Folding folding = Folding::kNone);

/// The graph of that many iterations back to back (at least 1). Forward is a chain of one task per
/// gradient, the last in the order of backward first. A task takes the share of forward that its
/// gradient has of backward or, where the model gives no ready times, of the elements. From the
/// second iteration on, Forward waits until the gradient is synchronised on the node, and Backward
/// until the node has sent what Backward overwrites. Throws as expand().
TaskGraph expand_back_to_back(const models::Model& model, const Plan& plan, int iterations,
                              Folding folding = Folding::kNone);

}  // namespace hipress::casync
