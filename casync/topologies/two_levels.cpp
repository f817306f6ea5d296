#include "casync/halves.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// Sums the slices of a group of `within` neighbours, the `host`-th one, on its `place`-th node.
TaskId sum_within(PartitionTasks& tasks, const UnitWork& work, std::int64_t host,
                  std::int64_t place) {
  const std::int64_t within = work.within;
  const std::uint32_t server = tasks.node(host * within + place);
  TaskId sum = work.ready[server];
  for (std::int64_t distance = 1; distance < within; ++distance) {
    const std::int64_t other = (place + within - distance) % within;
    const std::uint32_t worker = tasks.node(host * within + other);
    sum =
        tasks.contribute({.from = worker, .to = server, .ready = work.ready[worker], .other = sum});
  }
  return sum;
}

/// Adds up the sums of all groups on the owner. Another group's sum comes from the node with the
/// owner's place in that group.
TaskId reduce(PartitionTasks& tasks, const UnitWork& work, std::int64_t owner, bool divides) {
  const std::int64_t within = work.within;
  const std::int64_t hosts = tasks.nodes() / within;
  const std::int64_t place = owner % within;
  const std::int64_t own = owner / within;
  TaskId sum = sum_within(tasks, work, own, place);
  for (std::int64_t distance = 1; distance < hosts; ++distance) {
    const std::int64_t host = (own + hosts - distance) % hosts;
    const bool is_mean = divides && distance + 1 == hosts;
    sum = tasks.contribute({.from = tasks.node(host * within + place),
                            .to = tasks.node(owner),
                            .ready = sum_within(tasks, work, host, place),
                            .other = sum,
                            .role = Role::kHop,
                            .added = is_mean ? kDivideSum : kNoFlags});
  }
  return sum;
}

constexpr Halves kHalves = {.reduce = reduce, .gather = nullptr};

}  // namespace

/// ZeRO++'s qgZ (arXiv 2306.10209): values are encoded twice, whatever the number of nodes.
const Topology kTwoLevelReduceScatter = {
    .name = "two_level_reduce_scatter",
    .help = "neighbours add up their parts, then send the sums to other groups",
    .expand = [](GraphBuilder& builder,
                 const UnitWork& work) { expand_reduce_scatter(builder, work, kHalves); },
    .tasks_per_partition = tasks_of_half,
    .operation = Operation::kReduceScatter,
};

}  // namespace hipress::casync
