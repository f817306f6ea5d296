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

/// One task of a rank, with everything its run needs looked up beforehand.
struct LocalTask {
  casync::Task task;
  casync::TaskId id = 0;
  std::uint32_t waits_for = 0;  ///< predecessors to see done first; computation waits for none of
                                ///< its own kind: it is timed
  std::uint32_t order = 0;      ///< place in (gradient, peer_offset, partition, kind, id)
  std::uint32_t message =
      kNoIndex;  ///< buffer that an Encode or Recv fills, or that a Decode, Merge or Send reads
  std::uint32_t transfer =
      kNoIndex;  ///< Send: index into Program::sends(); Recv: into Program::receives()
  std::uint32_t first_gathered = 0;   ///< messages that a Decode takes of all nodes, by rank, are
  std::uint32_t end_gathered = 0;     ///< Program::gathered()[first … end)
  std::uint32_t first_successor = 0;  ///< the successors on this rank are
  std::uint32_t end_successor = 0;    ///< Program::successors()[first … end)
  std::uint32_t first_member = 0;     ///< a batch leader's members are
  std::uint32_t end_member = 0;       ///< Program::batch_members()[first … end)
  casync::Slice slice;                ///< elements of its unit that it acts on
};

/// A message's place in the rank's one arena.
struct MessageBuffer {
  std::int64_t offset = 0;
  std::int64_t capacity = 0;
};

/// When a replayed backward completes a gradient.
struct ReadyTime {
  std::uint32_t gradient = 0;
  std::chrono::nanoseconds after_start{};  ///< of backward
};

/// What one rank must know of a graph: its own tasks, and the messages it exchanges. Made once; the
/// graph, model and plan must outlive it.
class Program {
 public:
  /// Throws std::invalid_argument that names the task if the graph cannot be executed: see
  /// dataflow.hpp. Unless is_stepped(), it also throws if computation waits for communication, or
  /// if a gradient has two Backward tasks.
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
  /// Local indices of the tasks whose work a batch leader does besides its own.
  std::span<const std::uint32_t> members(const LocalTask& leader) const {
    return {members_.data() + leader.first_member, members_.data() + leader.end_member};
  }
  /// Of a Decode of all nodes' messages: these, by rank, as indices into messages().
  std::span<const std::uint32_t> gathered(const LocalTask& decode) const {
    return {gathered_.data() + decode.first_gathered, gathered_.data() + decode.end_gathered};
  }
  /// The local index of a task id, kNoIndex if the task is another rank's (or nobody's).
  std::uint32_t index_of(casync::TaskId id) const {
    return id < local_index_.size() ? local_index_[id] : kNoIndex;
  }
  std::span<const std::uint32_t> sends() const { return sends_; }        ///< local indices
  std::span<const std::uint32_t> receives() const { return receives_; }  ///< local indices
  /// AllReduce tasks, in the one order in which all ranks run them; local indices.
  std::span<const std::uint32_t> collectives() const { return collectives_; }
  /// The codec that an AllReduce casts with; null: it sums fp32.
  const kernels::Codec* cast_of(const LocalTask& reduce) const {
    if (!casync::casts(reduce.task)) return nullptr;
    return plan_.codecs[static_cast<std::size_t>(reduce.task.algorithm)].get();
  }
  std::span<const MessageBuffer> messages() const { return messages_; }
  std::int64_t arena_bytes() const { return arena_bytes_; }
  /// Whether computation waits for communication: the plan's schedule has a period of several
  /// steps, or gathers parameters. All of computation() runs then; otherwise schedule() alone does.
  bool is_stepped() const { return layout_.timetable.computation_waits(); }
  /// Of a stepped program: its computation, in the order in which it runs; local indices.
  std::span<const std::uint32_t> computation() const { return computation_; }
  /// The rank's Backward task of each gradient, or kNoIndex.
  std::span<const std::uint32_t> backward() const { return backward_; }
  /// std::invalid_argument if the gradient has none here.
  std::uint32_t backward_of(std::uint32_t gradient) const;
  /// The gradients that have a Backward task here, as that is computed on one stream in id order.
  std::span<const ReadyTime> schedule() const { return schedule_; }
  /// The length of this rank's Forward.
  casync::Picoseconds forward() const { return forward_; }

  /// "Encode fc6.weight[2] on node 1", for messages.
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
  std::vector<std::uint32_t> local_index_;  ///< per task id, kNoIndex elsewhere
  std::vector<std::uint32_t> successors_;
  std::vector<std::uint32_t> sends_, receives_, collectives_, members_, gathered_, computation_;
  std::vector<MessageBuffer> messages_;
  std::int64_t arena_bytes_ = 0;
  std::vector<std::uint32_t> backward_;
  std::vector<ReadyTime> schedule_;
  casync::Picoseconds forward_{};
  casync::Picoseconds computed_{};  ///< end of the last computation added
};

/// How many collectives a run of the graph has at a time.
int collectives_of(const casync::TaskGraph& graph);

}  // namespace hipress::runtime
