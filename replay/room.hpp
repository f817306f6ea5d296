#pragma once

#include <cstdint>
#include <span>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"

namespace hipress::replay {

/// Estimated memory of several ranks together, in bytes.
struct Room {
  std::int64_t gradients = 0;    ///< values of gradients and of the reference
  std::int64_t messages = 0;     ///< encoded and received messages
  std::int64_t states = 0;       ///< encoder states
  std::int64_t tables = 0;       ///< tables of tasks
  std::int64_t connections = 0;  ///< connections to the other ranks
  std::int64_t all() const { return gradients + messages + states + tables + connections; }
};

/// Estimated memory of a replay by the ranks `nodes` on CPUs, without the graph itself. `verify`
/// adds the memory of verification.
Room room_of(const casync::TaskGraph& graph, const models::Model& model,
             const plans::ResolvedPlan& plan, std::span<const std::uint32_t> nodes, bool verify);

/// Throws io::InputError, with figures and remedy, if the estimate exceeds the `available` bytes.
void require_room(const Room& room, std::size_t ranks, std::int64_t available);

}  // namespace hipress::replay
