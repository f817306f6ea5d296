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
  kReduceScatter,  ///< node k of N ends with the mean of partitions k, k + N …, its shard
  kGather,         ///< every node ends with all shards; partition k is that of node k
};
const char* to_string(Operation operation);  ///< "mean" …

/// The nodes that synchronise a unit: `first` and every `stride`-th after it, `nodes` in all. They
/// scatter or gather only the partitions that they have in common, with numbers k ≡ `first`
/// (mod `stride`).
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
  std::uint32_t within = 1;   ///< number of neighbours that add up first, in a reduction in two
                              ///< levels
  std::uint32_t rails = 1;    ///< Plan::rails
  bool divided = false;       ///< values were divided by N before, so the operation only sums
  bool as_stored = false;     ///< gradients are stored in the half precision that is sent
  std::vector<TaskId> ready;  ///< per node: the task after which the gradient is complete there
};

/// An implementation of an operation. Adding one takes a file that defines a row, and its place in
/// topologies(). Optional fields: without `rotates` graphs are not folded, without `coarse` plans
/// are searched by exact simulations alone, and without `bound` there is no lower bound.
struct Topology {
  std::string_view name;
  std::string_view help;
  /// Appends the tasks of one unit, predecessors before successors, and after each task the edges
  /// into it.
  void (*expand)(GraphBuilder& builder, const UnitWork& work);
  /// Number of tasks that expand() adds for each partition that has elements.
  double (*tasks_per_partition)(double nodes, bool compressed);
  Operation operation = Operation::kMean;
  enum class Form : std::uint8_t {
    kAny,
    kWhole,    ///< a library adds raw or half-precision values in place. K is 1 whatever the plan
               ///< says; neither `coarse` nor `bound` is needed
    kEncoded,  ///< only encoded messages, which no node adds up on the way. Raw values, factors and
               ///< half precision use `dense`
  };
  Form form = Form::kAny;
  /// Number of successive encodings of a node's values on their longest way into the mean. Null: N,
  /// one per hop, as in a ring.
  int (*encodings)(std::uint32_t nodes) = nullptr;
  /// True if rotating the nodes by one turns partition k on a node into partition k+1 on the next
  /// node (casync/folding.hpp).
  bool rotates = false;
  AddCoarsePattern coarse = nullptr;
  const BoundTerms* bound = nullptr;
  /// Broadcasts only: lower bound in ps on the time from the root's unit being ready until every
  /// node has all slices. Null: unknown, so all chunk counts are simulated.
  double (*spread)(const Slices& slices, const Wire& wire) = nullptr;
  /// Form kEncoded only: default topology of everything that is not encoded.
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

/// Topologies of a plan: of compressed gradients, and of raw ones.
struct TopologyPair {
  const Topology* encoded = nullptr;
  const Topology* raw = nullptr;
  /// Topology of gradients in that algorithm; `raw` for null and for factors.
  const Topology& of(const Algorithm* algorithm) const;
  /// Number of successive encodings of a gradient on its way; 1 for factors.
  int encodings_of(const Algorithm& algorithm, std::uint32_t nodes) const;
};
/// The pair of a plan with Plan::topology and Plan::raw_topology, which may be empty. Throws
/// std::invalid_argument for an unknown name.
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

/// The row of a mean or a broadcast with that name, in any case ("PS", "ring"); throws
/// std::invalid_argument that lists the names.
const Topology& find_topology(std::string_view name);

/// The row of an operation on shards for a Plan::shards_by other than kLibrary: "ring" with kGather
/// gives ring_gather. Throws std::invalid_argument that lists the known names.
const Topology& find_topology(std::string_view shards_by, Operation operation);

/// Converts a name in upper or lower case to a value of Plan::shards_by. Throws
/// std::invalid_argument as find_topology() does.
std::string known_shards_by(std::string_view text);

/// Expands a plan to the graph of one iteration. Every node has Forward, which is all computation
/// before the last backward (models::before_backward_s), then the gradients' Backward tasks in
/// order of their ready times, then the tasks that the topology adds. Throws std::invalid_argument
/// as make_layout() does, and with kFolded if foldable() is kImpossible.
TaskGraph expand(const models::Model& model, const Plan& plan, Folding folding = Folding::kNone);

/// Expands a plan likewise for the executor: tasks name their buffers. Throws as expand() does.
TaskGraph expand_to_run(const models::Model& model, const Plan& plan,
                        Folding folding = Folding::kNone);

/// The graph of `iterations` iterations (at least 1), back to back. Forward is a chain of one task
/// per gradient, in the reverse order of backward. Each takes a share of the forward time in
/// proportion to its gradient's backward time, or to its elements if the model gives no ready
/// times. From the second iteration on, Forward waits until the gradient is synchronised on the
/// node, and Backward until the node has sent the values that Backward overwrites. Throws as
/// expand() does.
TaskGraph expand_back_to_back(const models::Model& model, const Plan& plan, int iterations,
                              Folding folding = Folding::kNone);

}  // namespace hipress::casync
