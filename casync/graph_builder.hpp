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

}  // namespace hipress::casync
