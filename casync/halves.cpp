#include "casync/halves.hpp"

namespace hipress::casync {
namespace {

/// Calls `half` with each partition and its number. In a folded graph, skips partitions that are
/// not expanded.
template <class Half>
void for_partitions(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                    const Half& half) {
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    if (halves.rings) tasks.take_rail(work.rails);
    half(tasks, k);
  }
}

/// Calls `half` with each partition that the unit's nodes scatter or gather, and with its owner.
template <class Half>
void for_shards(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                const Half& half) {
  const std::int64_t stride = work.ranks.stride;
  for (std::int64_t k = work.ranks.first % stride; k < work.partitions; k += stride) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    if (halves.rings) tasks.take_rail(work.rails);
    half(tasks, tasks.number_of(k / stride));
  }
}

}  // namespace

void expand_mean(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                 std::int64_t first_owner) {
  for_partitions(builder, work, halves, [&](PartitionTasks& tasks, std::int64_t k) {
    const std::int64_t owner = first_owner + k;
    const TaskId sum = halves.reduce(tasks, work, owner, !tasks.compressed());
    const bool divided = !tasks.compressed() || (halves.partial_sums && tasks.divide_first());
    halves.gather(tasks, owner, sum, divided ? kNoFlags : kDivideOwn);
  });
}

void expand_reduce_scatter(GraphBuilder& builder, const UnitWork& work, const Halves& halves) {
  for_shards(builder, work, halves, [&](PartitionTasks& tasks, std::int64_t owner) {
    halves.reduce(tasks, work, owner, !work.divided);
  });
}

void expand_gather(GraphBuilder& builder, const UnitWork& work, const Halves& halves) {
  for_shards(builder, work, halves, [&](PartitionTasks& tasks, std::int64_t owner) {
    halves.gather(tasks, owner, work.ready[tasks.node(owner)], kNoFlags);
  });
}

}  // namespace hipress::casync
