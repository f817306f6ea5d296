#include "casync/partition.hpp"

namespace hipress::casync {
namespace {

/// The server's sum: its own slice, then those of ranks server-1, server-2, … mod N, which is the
/// order in which they should arrive, since worker i sends to servers i+1, i+2, … The chain fixes
/// the order of the floating-point sum. Returns the task after which the slice holds the mean or,
/// if that is to be coded, the sum: who codes it divides it while reading.
TaskId gather(PartitionTasks& tasks, const GradientWork& work, std::uint32_t nodes,
              std::uint32_t server) {
  TaskId sum = work.ready[server];
  for (std::uint32_t distance = 1; distance < nodes; ++distance) {
    const std::uint32_t worker = tasks.node(std::int64_t{server} - distance);
    TaskId message = work.ready[worker];
    if (tasks.compressed()) message = tasks.encode(worker, Role::kWorker, distance, message);
    const TaskId arrival = tasks.transfer(worker, server, message);
    const bool divides = distance == nodes - 1 && !tasks.compressed();
    const std::uint8_t flags = divides ? kDivideSum : 0;
    sum = tasks.add(server, arrival, sum, distance, flags);
  }
  return sum;
}

/// The mean goes to every worker; compressed, the server decodes its own message too, so that all
/// replicas end bit-identical.
void broadcast(PartitionTasks& tasks, std::uint32_t nodes, std::uint32_t server, TaskId sum) {
  TaskId message = sum;
  if (tasks.compressed()) {
    message = tasks.encode(server, Role::kServer, nodes == 2 ? 1 : 0, sum, kDivideOwn);
  }
  for (std::uint32_t distance = 1; distance < nodes; ++distance) {
    const std::uint32_t worker = tasks.node(std::int64_t{server} + distance);
    const TaskId arrival = tasks.transfer(server, worker, message);
    if (tasks.compressed()) tasks.decode(worker, arrival, distance);
  }
  if (tasks.compressed()) tasks.decode(server, message, 0);
}

}  // namespace

void expand_ps(GraphBuilder& builder, const GradientWork& work) {
  for (std::int64_t k = 0; k < work.partitions; k += partition_step(builder)) {
    PartitionTasks tasks(builder, work, k);
    if (tasks.empty()) break;
    const std::uint32_t server = tasks.node(work.gradient + k);
    const TaskId sum = gather(tasks, work, builder.nodes(), server);
    broadcast(tasks, builder.nodes(), server, sum);
  }
}

}  // namespace hipress::casync
