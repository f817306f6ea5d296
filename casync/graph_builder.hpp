#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::casync {

/// Extent of an expansion: the tasks of all nodes, or one node's share of them.
enum class Folding : std::uint8_t { kNone, kFolded };

/// Maximum number of tasks, and of edges: 2^32 − 1. Ids have 32 bits, and kNoIndex takes one of
/// their values.
inline constexpr std::size_t kMaxTasks = UINT32_MAX;

/// Collects tasks and edges in any order, then builds the compressed graph once.
class GraphBuilder {
 public:
  /// `most`: the limit on tasks and edges; tests lower it.
  explicit GraphBuilder(std::uint32_t nodes, std::uint32_t first_group = UINT32_MAX,
                        Folding folding = Folding::kNone, std::size_t most = kMaxTasks)
      : nodes_(nodes),
        first_group_(first_group),
        folded_(folding == Folding::kFolded),
        most_(most) {}
  /// Makes the graph record the buffers of tasks. Call it before the first add().
  void name_operands() { named_ = true; }
  /// Appends a task; its id is the number of tasks added before it. Throws std::invalid_argument if
  /// there are kMaxTasks.
  TaskId add(const Task& task, const Operands& operands = {});
  // Without name_operands(), the next functions do nothing and return kNoIndex.
  /// The buffer of a task's slice: (gradient, partition) on its node.
  std::uint32_t slice_of(const Task& task, std::int64_t bytes);
  /// The buffer of a whole factor (a low-rank codec's message) on a node; `unit` is the factor's
  /// own number. Slices of the factor that slice_of() makes later are parts of this buffer.
  std::uint32_t factor(std::uint32_t unit, std::uint32_t node, std::int64_t bytes);
  /// The buffer of a new message on a node.
  std::uint32_t message(std::uint32_t node, std::int8_t algorithm, std::int64_t bytes);
  /// A node's buffer for one message from every rank, each of at most `bytes`. The part for the
  /// message of rank r is gathered_part(…, r).
  std::uint32_t gathered(std::uint32_t node, std::int8_t algorithm, std::int64_t bytes);
  std::uint32_t gathered_part(std::uint32_t gathered, std::uint32_t rank) const {
    return named_ ? gathered + 1 + rank : kNoIndex;
  }
  /// The buffer that a task writes.
  std::uint32_t written_by(TaskId id) const { return named_ ? operands_[id].writes : kNoIndex; }
  /// Makes `after` wait for `before`. Throws std::invalid_argument if there are kMaxTasks edges.
  void edge(TaskId before, TaskId after);
  std::uint32_t nodes() const { return nodes_; }
  bool folded() const { return folded_; }
  /// See TaskGraph::representative().
  std::uint32_t representative(std::uint32_t node) const { return folded_ ? 0 : node; }
  TaskId size() const { return static_cast<TaskId>(tasks_.size()); }
  const Task& task(TaskId id) const { return tasks_[id]; }
  Task& task(TaskId id) { return tasks_[id]; }
  /// All edges in the order in which they were added.
  std::span<const std::pair<TaskId, TaskId>> edges() const { return edges_; }
  /// Renumbers the tasks after a rewrite so that ids are a topological order again. Of the tasks
  /// that may come next, the one with the lowest old id does. Throws std::invalid_argument for a
  /// cycle.
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
  /// Buffers of slices by unit, partition and node.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> slices_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> factors_;  ///< by unit and node
};

}  // namespace hipress::casync
