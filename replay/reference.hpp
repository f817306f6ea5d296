#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "casync/topology.hpp"
#include "kernels/codec/state_store.hpp"
#include "plans/plan_file.hpp"
#include "replay/inputs.hpp"
#include "runtime/dataflow.hpp"
#include "runtime/stages.hpp"

namespace hipress::replay {

/// The serial reference. It runs a graph's tasks in id order for all nodes in one thread, one
/// partition of one gradient at a time. Its memory is that of the largest partition, plus the
/// states of its encoders. Inputs are generated, or read, when they are needed (inputs.hpp).
class Reference {
 public:
  /// One partition of one unit (a gradient, or a bulk group) and its tasks on all nodes, in id
  /// order. A unit with factors is one partition, with the tasks of its factors.
  struct Partition {
    std::uint32_t gradient = 0;  ///< Task::gradient: the unit
    std::uint32_t partition = 0;
    casync::Slice slice;
    bool elementwise = true;  ///< elements are independent: no codec but an AllReduce's cast
    /// A library sums it or its factors in an unknown order, so exact bits are unknown.
    bool library = false;
    kernels::ValueType sums = kernels::ValueType::kFloat32;  ///< type in which the library sums
    casync::Operation operation = casync::Operation::kMean;
    std::span<const casync::TaskId> tasks;
  };

  /// Final values of a stretch of a partition on each node.
  struct Block {
    std::int64_t first = 0;                      ///< index of the first element in the unit
    std::vector<std::span<const float>> values;  ///< per node
  };

  /// The graph, model and plan must outlive the reference. Throws std::invalid_argument as
  /// runtime::slice_of() and runtime::read_dataflow() do, and if a message goes from one partition
  /// to another.
  Reference(const casync::TaskGraph& graph, const models::Model& model,
            const plans::ResolvedPlan& plan, const Inputs& inputs);

  const casync::Layout& layout() const { return layout_; }
  /// All partitions with elements, in order of gradient and partition, with or without tasks.
  std::span<const Partition> partitions() const { return partitions_; }

  /// Runs partition `index` and passes its result on all nodes to `visit`, block after block in
  /// order. The length of every block but the last is a multiple of 16 elements. If encoders keep
  /// states, run every iteration exactly once, in order.
  void run(std::size_t index, std::uint64_t iteration,
           const std::function<void(const Block&)>& visit) {
    run(index, partitions_[index].slice, iteration, visit);
  }
  /// Runs only a stretch of the partition. Unless the partition is elementwise, `stretch` must be
  /// the whole partition.
  void run(std::size_t index, casync::Slice stretch, std::uint64_t iteration,
           const std::function<void(const Block&)>& visit);

  /// Final values of the whole stretch on `node`. Call it after the stretch's run and before any
  /// other run.
  std::vector<float> result(std::size_t index, casync::Slice stretch, std::uint64_t iteration,
                            std::uint32_t node);

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  void collect_partitions();
  void collect_tasks();
  /// Allocates the values of the current block, the messages that are encoded in it and, the first
  /// time, the encoders' states.
  void make_room(std::size_t index);
  void run_block(std::size_t index, std::uint64_t iteration, casync::Slice block);
  /// Runs a task; returns the message that it passes on to its successors.
  std::span<std::byte> run_task(casync::TaskId id, std::uint64_t iteration, float*& state);
  std::span<std::byte> encode(const casync::Task& task, std::uint64_t iteration, float*& state);
  /// Allocates the message of a task that encodes, until the block's end.
  std::span<std::byte> take_message(const casync::Task& task);
  const kernels::Codec& codec(const casync::Task& task) const;
  void all_reduce(const casync::Task& task);
  std::span<float> slice(std::uint32_t node);
  /// The memory of a task's slice, which may be part of a factor.
  std::span<float> slice(const casync::Task& task);
  /// The unit and partition that a task belongs to.
  std::pair<std::uint32_t, std::uint32_t> partition_of(const casync::Task& task) const;
  void prepare_factors(std::size_t index);

  const casync::TaskGraph& graph_;
  const models::Model& model_;
  const plans::ResolvedPlan& plan_;
  Inputs inputs_;
  casync::Layout layout_;
  runtime::Dataflow flow_;
  std::vector<Partition> partitions_;
  std::vector<casync::TaskId> tasks_;    ///< by partition, then id
  std::vector<std::uint32_t> position_;  ///< per task id: index in its partition's tasks
  std::vector<std::vector<float>>
      states_;  ///< per partition: the states of its Encodes, one after the other

  std::vector<std::unique_ptr<kernels::StateStore>> initial_;  ///< per node; empty: all zeros
  /// States of the encoders of factors, by partition, node and array.
  std::map<std::tuple<std::size_t, std::uint32_t, std::string>, std::vector<float>> staged_states_;

  // State of the current block:
  std::vector<runtime::StagedUnit> staged_;  ///< per node, if there are factors
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<float>>
      factors_;                      ///< by unit, node
  std::set<std::uint32_t> reduced_;  ///< factors that a library has summed
  casync::Slice block_;
  std::vector<float> values_;   ///< every node's slice, one after the other
  std::vector<Line> messages_;  ///< messages of all encoding tasks
  std::size_t used_lines_ = 0;
  std::vector<std::span<std::byte>>
      held_;  ///< per task of the partition: the message that it passes on
};

}  // namespace hipress::replay
