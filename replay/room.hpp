#pragma once

#include <cstdint>
#include <span>

#include "casync/task_graph.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"

namespace hipress::replay {

/// Memory that ranks take in all.
struct Room {
  std::int64_t gradients = 0;    ///< bytes of their values, and of those that are checked against
  std::int64_t messages = 0;     ///< of what is encoded or received
  std::int64_t states = 0;       ///< of what encoders keep
  std::int64_t tables = 0;       ///< of what is known of tasks
  std::int64_t connections = 0;  ///< to the other ranks
  std::int64_t all() const { return gradients + messages + states + tables + connections; }
};

/// What replays of the graph by the ranks `nodes` take, on CPUs and besides the graph itself.
/// `verify`: with what checks the values.
Room room_of(const casync::TaskGraph& graph, const models::Model& model,
             const plans::ResolvedPlan& plan, std::span<const std::uint32_t> nodes, bool verify);

/// io::InputError, with the figure and the remedy, if that is more than the `available` bytes.
void require_room(const Room& room, std::size_t ranks, std::int64_t available);

}  // namespace hipress::replay
