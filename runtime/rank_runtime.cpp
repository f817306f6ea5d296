#include "runtime/rank_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "io/error.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Maximum wait, after this rank has reported a failure, to learn which of several concurrent
/// reports the ranks believe.
constexpr std::chrono::milliseconds kToHear{500};

/// Per task: true if another rank may delay it, through a message or an all-reduce that the task or
/// its predecessors on this rank wait for. For a Recv: true if its Send may be delayed.
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

std::unique_ptr<transport::Exchange> prepare_exchange(
    transport::Endpoint& endpoint, const Program& program, std::span<const std::uint32_t> sends,
    std::span<const std::uint32_t> receives, const Places& place, transport::Events events) {
  std::vector<transport::Outgoing> outgoing;
  for (const std::uint32_t index : sends) {
    const LocalTask& local = program.tasks()[index];
    outgoing.push_back({.peer = static_cast<int>(program.graph().peer(local.task)),
                        .tag = receive_of(program.graph(), local.id),
                        .source = place(index)});
  }
  std::vector<transport::Incoming> incoming;
  for (const std::uint32_t index : receives) {
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
    return index < tasks.size() ? index : kNoIndex;
  };
  const auto at = [&](std::uint32_t index, Blame blame) -> Stall {
    const std::string where = index == kNoIndex ? "the end" : program.describe(tasks[index]);
    return {
        {rank, fmt::format("rank {} made no progress for {} s at '{}'", rank, timeout_s, where)},
        patience(timeout_s, blame, rank)};
  };
  // A stepped program that waits here has finished all computation that can run so far.
  const std::uint32_t backward = first([&](std::uint32_t index) {
    return !program.is_stepped() && tasks[index].task.kind == Kind::kBackward && undone(index);
  });
  if (backward != kNoIndex) return at(backward, Blame::kSelf);
  if (busy != kNoIndex) return at(busy, Blame::kSelf);

  const std::vector<bool> held_up = held_up_by_others(program.graph());
  const auto receives = program.receives();
  auto missing = std::ranges::find_if(
      receives, [&](std::uint32_t index) { return undone(index) && !held_up[tasks[index].id]; });
  const Blame blame = missing != receives.end() ? Blame::kSender : Blame::kUnsure;
  if (missing == receives.end()) missing = std::ranges::find_if(receives, undone);
  if (missing == receives.end()) return at(first(undone), Blame::kUnsure);
  const LocalTask& local = tasks[*missing];
  const auto peer = static_cast<int>(program.graph().peer(local.task));
  // The peer is still connected: the transport would have reported a lost connection earlier.
  return {
      {peer, fmt::format("rank {0} sent nothing for {1} s; rank {2} waits for '{3}'; rank {0} is "
                         "still connected: if it is only late, as it evaluates, saves or loads "
                         "data, raise the timeout",
                         peer, timeout_s, rank, program.describe(local))},
      patience(timeout_s, blame, rank)};
}

FallibleRuntime::FallibleRuntime(transport::Endpoint& endpoint, const Program& program,
                                 double timeout_s)
    : endpoint_(endpoint), program_(program), timeout_s_(timeout_s) {}

void FallibleRuntime::sleep_until(Clock::time_point at) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, at, [this] { return failure_ != nullptr; });
  rethrow_failure();
}

void FallibleRuntime::rethrow_of_task(std::uint32_t index) const {
  try {
    throw;
  } catch (const transport::PeerError& error) {
    throw named(error);
  } catch (const std::bad_alloc&) {
    throw;  // concerns the rank, not the task
  } catch (const std::exception& error) {
    throw io::RunError(
        fmt::format("{}: {}", program_.describe(program_.tasks()[index]), error.what()));
  }
}

void FallibleRuntime::finish(transport::Exchange& exchange) const {
  try {
    exchange.finish();
  } catch (const transport::PeerError& error) {
    throw named(error);
  }
}

void FallibleRuntime::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  changed_.notify_all();
  on_failure();
}

void FallibleRuntime::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

transport::PeerError FallibleRuntime::named(const transport::PeerError& error) const {
  const std::uint32_t index =
      error.awaited.empty() ? waiting() : program_.index_of(error.awaited.front());
  if (index == kNoIndex) return error;
  return {error.culprit,
          fmt::format("{}; rank {} waits for '{}'", error.what(), program_.node(),
                      program_.describe(program_.tasks()[index])),
          error.awaited, error.loss};
}

void FallibleRuntime::end_if_stalled(std::unique_lock<std::mutex>& lock,
                                     std::chrono::nanoseconds quiet,
                                     const std::function<bool(std::uint32_t index)>& undone,
                                     std::uint32_t busy) {
  if (quiet < std::chrono::duration<double>(timeout_s_)) return;
  Stall stall = find_stall(program_, timeout_s_, undone, busy);
  if (const auto silent = endpoint_.silence()) stall = {named(*silent), {}};
  if (quiet < stall.patience) return;
  lock.unlock();
  // Abort before unwinding destroys the exchange, which would report that this rank gave up.
  endpoint_.abort(stall.error.culprit, stall.error.what());
  lock.lock();
  changed_.wait_for(lock, kToHear, [this] { return failure_ != nullptr; });
  if (failure_) return;
  failure_ = std::make_exception_ptr(stall.error);
  changed_.notify_all();
  on_failure();
}

}  // namespace hipress::runtime
