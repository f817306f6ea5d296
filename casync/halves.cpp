#include "casync/halves.hpp"

namespace hipress::casync {
namespace {

/// Calls `half` with each partition and its number, or in a folded graph with those that stand for
/// all.
template <class Half>
void for_partitions(GraphBuilder& builder, const UnitWork& work, const Half& half) {
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    half(tasks, k);
  }
}

}  // namespace

void expand_mean(GraphBuilder& builder, const UnitWork& work, const Halves& halves,
                 std::int64_t first_owner) {
  for_partitions(builder, work, [&](PartitionTasks& tasks, std::int64_t k) {
    const std::int64_t owner = first_owner + k;
    const TaskId sum = halves.reduce(tasks, work, owner, !tasks.compressed());
    const bool divided = !tasks.compressed() || (halves.partial_sums && tasks.divide_first());
    halves.gather(tasks, owner, sum, divided ? kNoFlags : kDivideOwn);
  });
}

void expand_reduce_scatter(GraphBuilder& builder, const UnitWork& work, const Halves& halves) {
  for_partitions(builder, work, [&](PartitionTasks& tasks, std::int64_t k) {
    halves.reduce(tasks, work, k, true);
  });
}

void expand_gather(GraphBuilder& builder, const UnitWork& work, const Halves& halves) {
  for_partitions(builder, work, [&](PartitionTasks& tasks, std::int64_t k) {
    halves.gather(tasks, k, work.ready[tasks.node(k)], kNoFlags);
  });
}

}  // namespace hipress::casync
