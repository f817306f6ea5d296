#include "runtime/rank_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Per task, whether another rank may hold it up, through a message or an all-reduce that it waits
/// for, or that a task of its own rank before it does. Of a Recv: whether its Send may be held up.
std::vector<bool> held_up_by_others(const casync::TaskGraph& graph) {
  std::vector<bool> held_up(graph.tasks());
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {  // ids are a topological order
    const casync::Task& task = graph[id];
    const bool waits = held_up[id] || casync::row_of(task.kind).from_others;
    for (const casync::TaskId next : casync::successors(graph, id)) {
      const bool here = graph[next].node == task.node;
      if (graph[next].kind == Kind::kRecv) {
        if (!here) held_up[next] = held_up[id];
      } else if (here && waits) {
        held_up[next] = true;
      }
    }
  }
  return held_up;
}

}  // namespace

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

std::chrono::nanoseconds patience(double timeout_s, Blame blame, int rank) {
  constexpr double kPerRank = 0.01;
  constexpr int kMaxRanks = 10;
  const double timeouts = blame == Blame::kSelf     ? 1
                          : blame == Blame::kSender ? 1.1 + kPerRank * std::min(rank, kMaxRanks)
                                                    : 1.3 + kPerRank * std::min(rank, kMaxRanks);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(timeout_s * timeouts));
}

Stall find_stall(const Program& program, double timeout_s,
                 const std::function<bool(std::uint32_t index)>& undone, std::uint32_t busy) {
  const auto rank = static_cast<int>(program.node());
  const std::span<const LocalTask> tasks = program.tasks();
  const auto first = [&](const auto& is_wanted) {
    std::uint32_t index = 0;
    while (index < tasks.size() && !is_wanted(index)) ++index;
    return index < tasks.size() ? index : kNone;
  };
  const auto at = [&](std::uint32_t index, Blame blame) -> Stall {
    const std::string where = index == kNone ? "the end" : program.describe(tasks[index]);
    return {
        {rank, fmt::format("rank {} made no progress for {} s at '{}'", rank, timeout_s, where)},
        patience(timeout_s, blame, rank)};
  };
  const std::uint32_t backward = first([&](std::uint32_t index) {
    return tasks[index].task.kind == Kind::kBackward && undone(index);
  });
  if (backward != kNone) return at(backward, Blame::kSelf);
  if (busy != kNone) return at(busy, Blame::kSelf);

  const std::vector<bool> held_up = held_up_by_others(program.graph());
  const auto receives = program.receives();
  auto missing = std::ranges::find_if(
      receives, [&](std::uint32_t index) { return undone(index) && !held_up[tasks[index].id]; });
  const Blame blame = missing != receives.end() ? Blame::kSender : Blame::kUnsure;
  if (missing == receives.end()) missing = std::ranges::find_if(receives, undone);
  if (missing == receives.end()) return at(first(undone), Blame::kUnsure);
  const LocalTask& local = tasks[*missing];
  const auto peer = static_cast<int>(program.graph().peer(local.task));
  return {{peer, fmt::format("rank {} sent nothing for {} s; rank {} waits for '{}'", peer,
                             timeout_s, rank, program.describe(local))},
          patience(timeout_s, blame, rank)};
}

}  // namespace hipress::runtime
