#pragma once

#include <compare>
#include <cstdint>

#include "casync/task_graph.hpp"

/// Order of service of tasks that wait for one resource: by ServiceKey, then by the task's place
/// within its unit. The engine and the planner's timeline (planner/timing) both follow this order.
namespace hipress::sim {

struct ServiceKey {
  std::int64_t first = 0, second = 0;
  auto operator<=>(const ServiceKey&) const = default;
};

/// Usual order of a resource: ready time, then gradient (Task::gradient, the unit).
constexpr ServiceKey key_by_ready(std::int64_t ready, std::uint32_t gradient) {
  return {ready, gradient};
}

/// Priority order of messages: by how early the next forward pass needs their gradient
/// (TaskGraph::need), then by ready time. Backward ends with the first layer's gradient, so the
/// last gradient goes first.
constexpr ServiceKey key_by_need(std::int64_t ready, std::uint32_t need) {
  return {-std::int64_t{need}, ready};
}

/// Peer offset, partition, kind and id, packed into two numbers that compare fast.
struct PlaceInUnit {
  std::uint64_t first = 0, second = 0;
  auto operator<=>(const PlaceInUnit&) const = default;
  casync::TaskId id() const { return static_cast<casync::TaskId>(second); }
};

inline PlaceInUnit place_in_unit(const casync::Task& task, casync::TaskId id) {
  return {(std::uint64_t{task.peer_offset} << 32) | task.partition,
          (static_cast<std::uint64_t>(task.kind) << 32) | id};
}

}  // namespace hipress::sim
