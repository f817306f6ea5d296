#include "executor/rank_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hipress::executor {

std::unique_ptr<transport::Exchange> prepare_exchange(transport::Endpoint& endpoint,
                                                      const Program& program, const Places& place,
                                                      transport::Events events) {
  std::vector<transport::Outgoing> outgoing;
  for (const std::uint32_t index : program.sends()) {
    const LocalTask& local = program.tasks()[index];
    outgoing.push_back({.peer = static_cast<int>(program.graph().peer(local.task)),
                        .tag = receive_of(program.graph(), local.id),
                        .source = place(index)});
  }
  std::vector<transport::Incoming> incoming;
  for (const std::uint32_t index : program.receives()) {
    const LocalTask& local = program.tasks()[index];
    incoming.push_back({.peer = static_cast<int>(program.graph().peer(local.task)),
                        .tag = local.id,
                        .destination = place(index)});
  }
  return endpoint.prepare(std::move(outgoing), std::move(incoming), std::move(events));
}

transport::PeerError stalled(const Program& program, double timeout_s,
                             const std::function<bool(std::uint32_t index)>& undone,
                             std::uint32_t otherwise) {
  const auto rank = static_cast<int>(program.node());
  const auto missing = std::ranges::find_if(program.receives(), undone);
  if (missing != program.receives().end()) {
    const LocalTask& local = program.tasks()[*missing];
    const auto peer = static_cast<int>(program.graph().peer(local.task));
    return {peer, fmt::format("rank {} sent nothing for {} s; rank {} waits for '{}'", peer,
                              timeout_s, rank, program.describe(local))};
  }
  std::uint32_t index = 0;
  while (index < program.tasks().size() && !undone(index)) ++index;
  if (index == program.tasks().size()) index = otherwise;
  return {rank, fmt::format("rank {} made no progress for {} s at '{}'", rank, timeout_s,
                            index == kNone ? "the end" : program.describe(program.tasks()[index]))};
}

}  // namespace hipress::executor
