#include "sim/works.hpp"

#include <fmt/format.h>

#include <string>

#include "io/error.hpp"

namespace hipress::sim {

using casync::Kind;
using casync::Task;

void report_too_long(const Task& task, std::uint32_t nodes, double seconds) {
  const casync::Resource resource = casync::resource_of(task.kind);
  const bool computes = resource == casync::Resource::kCompute;
  const bool codes = resource == casync::Resource::kCodec;
  std::string what = casync::to_string(task.kind);
  if (!computes) what += fmt::format(" of {} {}", task.amount, codes ? "elements" : "bytes");
  what += fmt::format(" on node {}", task.node);
  if (task.kind == Kind::kSend) {
    what += fmt::format(" to node {}", (std::uint64_t{task.node} + task.peer_offset) % nodes);
  }
  throw io::InputError(fmt::format(
      "{} takes {:.3g} s, but a task must take 0 s to {:g} s: {}", what, seconds, kLongest_s,
      computes || codes ? "check compute speeds, times and jitter"
                        : "check bandwidths, oversubscription, overheads and jitter"));
}

Works::Works(const TaskCosts& costs, const costs::Cluster& cluster, std::uint32_t divisor)
    : costs_(costs),
      cluster_(cluster),
      divisor_(divisor),
      ring_(costs::ring_costs(cluster)),
      ranks_per_core_(costs::ranks_per_core(cluster)) {
  if (cluster.host_link) add(costs::Path::kWithinHost);
  add(costs::Path::kBetweenHosts);
  for (std::size_t levels = 1; levels <= cluster.racks.size(); ++levels) {
    add(costs::between_racks(levels));
  }
}

void Works::add(costs::Path path) {
  const costs::LinkCosts link = costs::path_costs(cluster_, path);
  const Task empty = {.peer_offset = 1, .kind = Kind::kSend};
  paths_[static_cast<std::size_t>(path)] = {link, checked(empty, link.overhead_s),
                                            checked(empty, link.latency_s)};
}

std::int64_t Works::of(const Task& task, costs::Path path, double speed,
                       std::span<const casync::Factor> factors) const {
  switch (casync::resource_of(task.kind)) {
    case casync::Resource::kPorts:
      return task.kind == Kind::kAllReduce ? all_reduce(task) : message(task, path);
    case casync::Resource::kLocal:
      return local(task);
    case casync::Resource::kCodec:
      return at_speed(task, codec(task, factors), speed);
    case casync::Resource::kCompute:
      return at_speed(task, computation(task), speed);
    case casync::Resource::kCollective:  // Works::of_group() has their work
    case casync::Resource::kNone:
      break;
  }
  return 0;
}

std::int64_t Works::wire(const Task& task, std::uint32_t nodes,
                         const costs::LinkCosts& link) const {
  const auto of = [&](const costs::CollectiveRow& row) {
    return checked(task, costs::wire_s(row, nodes, task.amount, link));
  };
  const auto bytes = static_cast<double>(task.amount);
  switch (task.kind) {
    case Kind::kSend:
      return checked(task, bytes / link.bandwidth);
    case Kind::kAllReduce:
      return of(costs::kAllReduce);
    case Kind::kAllGather:
      return of(costs::kAllGather);
    case Kind::kReduceScatter:
      return of(costs::kReduceScatter);
    case Kind::kAllToAll:
      return of(costs::kAllToAll);
    case Kind::kLocalReduce:
    case Kind::kLocalBroadcast:
      return checked(task, bytes * costs::local_s_per_byte(cluster_));
    default:
      return 0;
  }
}

std::int64_t Works::computation(const Task& task) const {
  if (task.amount > kLongest_ps) {
    report_too_long(task, cluster_.nodes, 1e-12 * static_cast<double>(task.amount));
  }
  return task.amount;
}

std::int64_t Works::at_speed(const Task& task, std::int64_t nominal, double speed) const {
  if (speed == 1) return nominal;
  const double scaled = static_cast<double>(nominal) / speed + 0.5;
  if (!(scaled <= static_cast<double>(kLongest_ps))) {
    report_too_long(task, cluster_.nodes, 1e-12 * scaled);
  }
  return static_cast<std::int64_t>(scaled);
}

}  // namespace hipress::sim
