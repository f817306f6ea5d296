#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "runtime/dataflow.hpp"

namespace hipress::runtime {

using casync::kNoIndex;

/// One task of a rank, with all lookups for its execution done in advance.
struct LocalTask {
  casync::Task task;
  casync::TaskId id = 0;
  /// Number of predecessors that must complete first. Computation does not wait for other
  /// computation, as its times are scheduled.
  std::uint32_t waits_for = 0;
  std::uint32_t order = 0;  ///< position by (gradient, peer_offset, partition, kind, id)
  /// Buffer that an Encode or Recv fills, or that a Decode, Merge or Send reads.
  std::uint32_t message = kNoIndex;
  /// Send: index into Program::sends(). Recv: index into Program::receives().
  std::uint32_t transfer = kNoIndex;
  std::uint32_t first_gathered = 0;   ///< Decode: start of its messages of all nodes, by rank,
  std::uint32_t end_gathered = 0;     ///< and their end; see Program::gathered()
  std::uint32_t first_successor = 0;  ///< start of the successors on this rank,
  std::uint32_t end_successor = 0;    ///< and their end; see Program::successors()
  std::uint32_t first_member = 0;     ///< batch leader: start of the members,
  std::uint32_t end_member = 0;       ///< and their end; see Program::members()
  casync::Slice slice;                ///< elements of its unit that it acts on
};

/// Location of a message in the rank's arena.
struct MessageBuffer {
  std::int64_t offset = 0;
  std::int64_t capacity = 0;
};

/// Time at which a replayed backward completes a gradient.
struct ReadyTime {
  std::uint32_t gradient = 0;
  std::chrono::nanoseconds after_start{};  ///< time after the start of backward
};

/// One rank's part of a graph: its own tasks, and the messages it exchanges. Built once; the graph,
/// model and plan must outlive it.
class Program {
 public:
  /// Throws std::invalid_argument naming the task if the graph cannot be executed (see
  /// dataflow.hpp), and also, unless is_stepped(), if computation waits for communication or a
  /// gradient has two Backward tasks.
  Program(const casync::TaskGraph& graph, const models::Model& model,
          const plans::ResolvedPlan& plan, std::uint32_t node);

  const casync::TaskGraph& graph() const { return graph_; }
  const models::Model& model() const { return model_; }
  const plans::ResolvedPlan& plan() const { return plan_; }
  const casync::Layout& layout() const { return layout_; }
  std::uint32_t node() const { return node_; }

  std::span<const LocalTask> tasks() const { return tasks_; }  ///< in id order
  std::span<const std::uint32_t> successors(const LocalTask& task) const {
    return {successors_.data() + task.first_successor, successors_.data() + task.end_successor};
  }
  /// Other members of a leader's batch, as local indices.
  std::span<const std::uint32_t> members(const LocalTask& leader) const {
    return {members_.data() + leader.first_member, members_.data() + leader.end_member};
  }
  /// Messages of a Decode of all nodes' messages, by rank, as indices into messages().
  std::span<const std::uint32_t> gathered(const LocalTask& decode) const {
    return {gathered_.data() + decode.first_gathered, gathered_.data() + decode.end_gathered};
  }
  /// Local index of a task id; kNoIndex if this rank has no such task.
  std::uint32_t index_of(casync::TaskId id) const {
    return id < local_index_.size() ? local_index_[id] : kNoIndex;
  }
  std::span<const std::uint32_t> sends() const { return sends_; }        ///< local indices
  std::span<const std::uint32_t> receives() const { return receives_; }  ///< local indices
  /// AllReduce tasks as local indices, in the order in which all ranks run them.
  std::span<const std::uint32_t> collectives() const { return collectives_; }
  /// Codec that an AllReduce casts with; null: it sums fp32.
  const kernels::Codec* cast_of(const LocalTask& reduce) const {
    if (!casync::casts(reduce.task)) return nullptr;
    return plan_.codecs[static_cast<std::size_t>(reduce.task.algorithm)].get();
  }
  std::span<const MessageBuffer> messages() const { return messages_; }
  std::int64_t arena_bytes() const { return arena_bytes_; }
  /// True if computation waits for communication: the plan's schedule has a period of several
  /// steps, or gathers parameters. Then all of computation() runs; otherwise only schedule().
  bool is_stepped() const { return layout_.timetable.computation_waits(); }
  /// Computation of a stepped program in order of execution, as local indices.
  std::span<const std::uint32_t> computation() const { return computation_; }
  /// This rank's Backward task of each gradient, or kNoIndex.
  std::span<const std::uint32_t> backward() const { return backward_; }
  /// Backward task of a gradient; throws std::invalid_argument if this rank has no such task.
  std::uint32_t backward_of(std::uint32_t gradient) const;
  /// Ready times of the gradients with a Backward task here, computed on one stream in id order.
  std::span<const ReadyTime> schedule() const { return schedule_; }
  /// Duration of this rank's Forward.
  casync::Picoseconds forward() const { return forward_; }

  /// Name of a task in messages: "Encode fc6.weight[2] on node 1".
  std::string describe(const LocalTask& task) const;

 private:
  void add_tasks(const Dataflow& flow);
  void add_computation(std::uint32_t index);
  void add_message(std::uint32_t index, std::int64_t capacity);
  void add_batches();
  void add_successors();
  void assign_order();

  const casync::TaskGraph& graph_;
  const models::Model& model_;
  const plans::ResolvedPlan& plan_;
  std::uint32_t node_;
  casync::Layout layout_;
  std::vector<LocalTask> tasks_;
  std::vector<std::uint32_t> local_index_;  ///< per task id; kNoIndex: another rank's task
  std::vector<std::uint32_t> successors_;
  std::vector<std::uint32_t> sends_, receives_, collectives_, members_, gathered_, computation_;
  std::vector<MessageBuffer> messages_;
  std::int64_t arena_bytes_ = 0;
  std::vector<std::uint32_t> backward_;
  std::vector<ReadyTime> schedule_;
  casync::Picoseconds forward_{};
  casync::Picoseconds computed_{};  ///< end time of the last computation added
};

/// Number of transport::Collective objects that a run of the graph needs at a time.
int collectives_of(const casync::TaskGraph& graph);

}  // namespace hipress::runtime
