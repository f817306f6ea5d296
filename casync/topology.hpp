#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/plan.hpp"
#include "casync/topology_model.hpp"
#include "models/model.hpp"

/// Topologies, and the expansion of plans to task graphs.
///
///   casync::Plan plan;
///   plan.topology = "ring";
///   plan.nodes = 4;
///   plan.decisions.assign(model.gradients.size(), {.algorithm = casync::kRaw, .partitions = 4});
///   const casync::TaskGraph graph = casync::expand(model, plan);  // one iteration, to simulate
///   for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
///     std::puts(casync::describe(graph, id).c_str());  // "Send g3[2] on node 1"
///   }
///   const casync::TaskGraph job = casync::expand_to_run(model, plan);  // for the executor
namespace hipress::casync {

/// Operation on a unit's values over all nodes.
enum class Operation : std::uint8_t {
  kMean,           ///< every node ends with the mean of all
  kBroadcast,      ///< every node ends with the root's values
  kReduceScatter,  ///< node k of N ends with the mean of its shard: partitions k, k + N …
  kGather,         ///< every node ends with all shards; partition k comes from node k
};
const char* to_string(Operation operation);  ///< "mean" …

/// The nodes that synchronise a unit: `first` and every `stride`-th after it, `nodes` in all. Of
/// the partitions, they scatter or gather only those with numbers k ≡ `first` (mod `stride`).
struct Ranks {
  std::uint32_t first = 0;
  std::uint32_t nodes = 0;  ///< 0: all nodes of the graph
  std::uint32_t stride = 1;
};

/// A unit to synchronise: the input of a topology.
struct UnitWork {
  std::uint32_t unit = 0;       ///< Task::gradient: input index g, or index of a bulk group
  std::int64_t elements = 0;    ///< m
  std::int32_t partitions = 1;  ///< K
  std::int8_t algorithm_index = kRaw;
  const Algorithm* algorithm = nullptr;  ///< null: raw fp32
  std::uint32_t root = 0;                ///< root of a broadcast
  Ranks ranks = {};
  std::uint32_t within = 1;   ///< two-level reduction: number of neighbours that add up first
  std::uint32_t rails = 1;    ///< Plan::rails
  bool divided = false;       ///< values were divided by N before, so the operation only sums
  bool as_stored = false;     ///< gradients are stored in the half precision that is sent
  std::vector<TaskId> ready;  ///< per node: the task after which the gradient is complete there
};

/// An implementation of an operation. Adding one takes a file that defines a row, and its place in
/// topologies(). Three fields are optional. Without `rotates`, graphs are not folded. Without
/// `coarse`, a search simulates every plan exactly. Without `bound`, there is no lower bound.
struct Topology {
  std::string_view name;
  std::string_view help;
  /// Adds the tasks of one unit, predecessors before successors. After each task, adds the edges
  /// into it.
  void (*expand)(GraphBuilder& builder, const UnitWork& work);
  /// Number of tasks that expand() adds for each partition that has elements.
  double (*tasks_per_partition)(double nodes, bool compressed);
  Operation operation = Operation::kMean;
  enum class Form : std::uint8_t {
    kAny,
    kWhole,    ///< a library averages raw or half-precision values in place. K is 1 whatever the
               ///< plan says; neither `coarse` nor `bound` is needed
    kEncoded,  ///< for encoded messages that no node adds up on the way. Raw values, factors and
               ///< half precision use the topology `dense`
  };
  Form form = Form::kAny;
  /// Number of times that a node's values are encoded on their longest path into the mean. Null: N,
  /// one per hop, as in a ring.
  int (*encodings)(std::uint32_t nodes) = nullptr;
  /// True if rotating the nodes by one turns partition k on a node into partition k+1 on the next
  /// node (casync/folding.hpp).
  bool rotates = false;
  AddCoarsePattern coarse = nullptr;
  const BoundTerms* bound = nullptr;
  /// Broadcasts only: lower bound in ps of the time from when the root's unit is ready until every
  /// node has all slices. Null: unknown, so all chunk counts are simulated.
  double (*spread)(const Slices& slices, const Wire& wire) = nullptr;
  /// Form kEncoded only: default topology of all units that are not encoded.
  std::string_view dense = {};

  int encodings_of(std::uint32_t nodes) const {
    return encodings != nullptr ? encodings(nodes) : static_cast<int>(nodes);
  }
  bool has_coarse() const { return coarse != nullptr || form == Form::kWhole; }
  bool has_bound() const { return bound != nullptr || form == Form::kWhole; }
};

/// All rows, built-in ones first.
std::span<const Topology* const> topologies();

/// Built-in rows: the table in topologies/.
std::span<const Topology* const> own_topologies();

/// Topologies of a plan: one for compressed gradients, one for raw ones.
struct TopologyPair {
  const Topology* encoded = nullptr;
  const Topology* raw = nullptr;
  /// Topology of gradients that the algorithm compresses; `raw` for null and for factors.
  const Topology& of(const Algorithm* algorithm) const;
  /// Number of times that a gradient is encoded on its way; 1 for factors.
  int encodings_of(const Algorithm& algorithm, std::uint32_t nodes) const;
};
/// The pair for these values of Plan::topology and Plan::raw_topology. `raw_topology` may be empty.
/// Throws std::invalid_argument for an unknown name.
TopologyPair topologies_of(std::string_view topology, std::string_view raw_topology);

/// All topologies of an operation.
std::vector<const Topology*> topologies_for(Operation operation);

/// Names for help and messages: "ps, ring, allreduce".
std::string topology_names(Operation operation);

/// Adds a row to topologies() for its own lifetime. Not thread-safe: no other thread may read
/// topologies() during construction and destruction. Throws std::invalid_argument if the name is
/// taken.
class TopologyRegistration {
 public:
  explicit TopologyRegistration(const Topology& topology);
  ~TopologyRegistration();
  TopologyRegistration(const TopologyRegistration&) = delete;
  TopologyRegistration& operator=(const TopologyRegistration&) = delete;

 private:
  const Topology* topology_;
};

/// The row of a mean or a broadcast with that name, in upper or lower case ("PS", "ring"). Throws
/// std::invalid_argument, which lists the names.
const Topology& find_topology(std::string_view name);

/// The row of an operation on shards for a value of Plan::shards_by other than kLibrary: "ring"
/// with kGather gives ring_gather. Throws std::invalid_argument, which lists the known names.
const Topology& find_topology(std::string_view shards_by, Operation operation);

/// Converts a name in upper or lower case to a value of Plan::shards_by. Throws
/// std::invalid_argument as find_topology() does.
std::string known_shards_by(std::string_view text);

/// Expands a plan to the graph of one iteration. Every node has a Forward task, which is all
/// computation before the last backward pass (models::before_backward_s); the gradients' Backward
/// tasks, in the order of ready times; and the tasks that the topology adds. Throws
/// std::invalid_argument as make_layout() does, and with kFolded if foldable() is kImpossible.
TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding = Folding::kNone);

/// Expands a plan for the executor: tasks name their buffers. Throws as expand() does.
TaskGraph expand_to_run(const models::Model& model, const Plan& plan,
                        Folding folding = Folding::kNone);

/// The graph of `iterations` iterations (at least 1), back to back. A forward pass is a chain of
/// one task per gradient, in the reverse order of backward. Each task's share of the forward time
/// is proportional to its gradient's backward time, or to its elements if the model gives no ready
/// times. From the second iteration on, a gradient's Forward task waits until the node has its
/// mean, and its Backward task until the node has sent the values that it overwrites. Throws as
/// expand() does.
TaskGraph expand_back_to_back(const models::Model& model, const Plan& plan, int iterations,
                              Folding folding = Folding::kNone);

}  // namespace hipress::casync
