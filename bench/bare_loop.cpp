#include "bench/bare_loop.hpp"

#include <algorithm>

namespace hipress::bench {
namespace {

using casync::Kind;
using casync::TaskId;

constexpr TaskId kNoIndex = ~TaskId{0};
constexpr std::uint32_t kNoResource = ~std::uint32_t{0};

/// A node has three resources: compute, codec and egress. A Recv occupies none.
std::uint32_t resource_of(const casync::Task& task) {
  switch (task.kind) {
    case Kind::kForward:
    case Kind::kBackward:
      return 3 * task.node;
    case Kind::kSend:
      return 3 * task.node + 2;
    case Kind::kRecv:
      return kNoResource;
    default:
      return 3 * task.node + 1;
  }
}

}  // namespace

BareLoop::BareLoop(const casync::TaskGraph& graph, std::int64_t overhead, std::int64_t ps_per_byte)
    : graph_(graph), next_(graph.tasks(), kNoIndex) {
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    resource_.push_back(resource_of(task));
    const bool computes = task.kind == Kind::kForward || task.kind == Kind::kBackward;
    duration_.push_back(task.kind == Kind::kSend ? overhead + task.amount * ps_per_byte
                        : computes               ? task.amount
                                                 : 0);
  }
}

std::int64_t BareLoop::run() {
  waiting_ = graph_.predecessors;
  queues_.assign(3 * graph_.nodes, {false, kNoIndex, kNoIndex});
  for (TaskId id = 0; id < graph_.tasks(); ++id) {
    if (waiting_[id] == 0) make_ready(id, 0);
  }
  std::int64_t now = 0;
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = events_.back();
    events_.pop_back();
    now = event.time;
    const std::uint32_t resource = resource_[event.task];
    if (resource != kNoResource) {
      Queue& queue = queues_[resource];
      queue.busy = false;
      if (queue.head != kNoIndex) {
        const TaskId first = queue.head;
        queue.head = next_[first];
        queue.busy = true;
        start(first, now);
      }
    }
    for (const TaskId next : casync::successors(graph_, event.task)) {
      if (--waiting_[next] == 0) make_ready(next, now);
    }
  }
  return now;
}

void BareLoop::make_ready(TaskId id, std::int64_t now) {
  if (resource_[id] == kNoResource) return start(id, now);
  Queue& queue = queues_[resource_[id]];
  if (!queue.busy) {
    queue.busy = true;
    return start(id, now);
  }
  next_[id] = kNoIndex;
  if (queue.head == kNoIndex) {
    queue.head = id;
  } else {
    next_[queue.tail] = id;
  }
  queue.tail = id;
}

void BareLoop::start(TaskId id, std::int64_t now) {
  events_.push_back({now + duration_[id], id});
  std::push_heap(events_.begin(), events_.end());
}

}  // namespace hipress::bench
