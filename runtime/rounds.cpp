#include "runtime/rounds.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace hipress::runtime {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// A message or an all-reduce that depends only on earlier rounds.
struct Candidate {
  std::int64_t ready_ps = 0;
  std::uint32_t gradient = 0, peer_offset = 0, partition = 0;
  TaskId id = 0;  ///< id of the Send, or of the all-reduce's first task
  bool operator>(const Candidate& other) const { return key() > other.key(); }

 private:
  std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t, TaskId> key() const {
    return {ready_ps, gradient, peer_offset, partition, id};
  }
};

/// Bytes and messages of one rank in the current round.
struct Load {
  std::int64_t bytes = 0;
  std::int32_t messages = 0;
};

class Rounds {
 public:
  Rounds(const TaskGraph& graph, const RoundLimits& limits)
      : graph_(graph),
        limits_(limits),
        waits_for_(graph.tasks()),
        ready_ps_(graph.tasks()),
        computed_next_(graph.tasks(), casync::kNoIndex),
        out_(graph.nodes),
        in_(graph.nodes) {
    std::vector<TaskId> computed_last(graph.nodes, casync::kNoIndex);
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      for (const TaskId next : casync::successors(graph, id)) ++waits_for_[next];
      if (casync::is_computation(graph[id])) {
        TaskId& last = computed_last[graph[id].node];
        if (last != casync::kNoIndex) {
          computed_next_[last] = id;
          ++waits_for_[id];
        }
        last = id;
      }
      if (graph[id].kind == Kind::kAllReduce) reduces_[slice_of(id)].tasks.push_back(id);
    }
    for (const auto& [slice, reduce] : reduces_) {
      if (reduce.tasks.size() != graph.nodes) {
        throw std::invalid_argument("task graph: " + casync::describe(graph, reduce.tasks.front()) +
                                    " is an all-reduce that not every node takes part in once");
      }
    }
  }

  std::vector<Round> derive() {
    start();
    std::int64_t now_ps = 0;
    while (!candidates_.empty()) {
      now_ps = std::max(now_ps, candidates_.top().ready_ps);
      now_ps = add_round(now_ps);
    }
    return std::move(rounds_);
  }

 private:
  struct Reduce {
    std::vector<TaskId> tasks;
    std::uint32_t ready = 0;
    std::int64_t ready_ps = 0;
  };
  using SliceKey = std::pair<std::uint32_t, std::uint32_t>;

  SliceKey slice_of(TaskId id) const { return {graph_[id].gradient, graph_[id].partition}; }

  void start() {
    std::vector<TaskId> first;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (waits_for_[id] == 0) first.push_back(id);
    }
    for (const TaskId id : first) release(id);
  }

  /// Completes the task at `at_ps`, and recursively its successors of known duration.
  void finish(TaskId id, std::int64_t at_ps) {
    std::vector<std::pair<TaskId, std::int64_t>> over{{id, at_ps}};
    while (!over.empty()) {
      const auto [done, end_ps] = over.back();
      over.pop_back();
      const auto follow = [&, at = end_ps](TaskId next) {
        ready_ps_[next] = std::max(ready_ps_[next], at);
        if (--waits_for_[next] > 0) return;
        if (!takes_known_time(next)) return release(next);
        over.emplace_back(next, ready_ps_[next] + duration_ps(graph_[next]));
      };
      for (const TaskId next : casync::successors(graph_, done)) follow(next);
      if (computed_next_[done] != casync::kNoIndex) follow(computed_next_[done]);
    }
  }

  bool takes_known_time(TaskId id) const {
    return graph_[id].kind != Kind::kSend && graph_[id].kind != Kind::kAllReduce;
  }

  std::int64_t duration_ps(const Task& task) const {
    if (casync::is_computation(task)) return task.amount;
    const bool codes =
        task.kind == Kind::kEncode || task.kind == Kind::kDecode || task.kind == Kind::kMerge;
    return codes && !casync::is_instant(task) ? task.amount * limits_.ps_per_element : 0;
  }

  void release(TaskId id) {
    const Task& task = graph_[id];
    if (takes_known_time(id)) return finish(id, ready_ps_[id] + duration_ps(task));
    if (task.kind == Kind::kSend) {
      return candidates_.push({ready_ps_[id], task.gradient, task.peer_offset, task.partition, id});
    }
    Reduce& reduce = reduces_.at(slice_of(id));
    reduce.ready_ps = std::max(reduce.ready_ps, ready_ps_[id]);
    if (++reduce.ready < graph_.nodes) return;
    candidates_.push({reduce.ready_ps, task.gradient, 0, task.partition, reduce.tasks.front()});
  }

  /// Builds the round that starts at `now_ps`; returns its end in ps.
  std::int64_t add_round(std::int64_t now_ps) {
    std::fill(out_.begin(), out_.end(), Load{});
    std::fill(in_.begin(), in_.end(), Load{});
    Round& round = rounds_.emplace_back();
    std::vector<Candidate> later;
    while (!candidates_.empty() && candidates_.top().ready_ps <= now_ps) {
      const Candidate candidate = candidates_.top();
      candidates_.pop();
      if (!(graph_[candidate.id].kind == Kind::kSend ? take_message(round, candidate.id)
                                                     : take_reduce(round, candidate.id))) {
        later.push_back(candidate);
      }
    }
    for (const Candidate& candidate : later) candidates_.push(candidate);
    std::int64_t most_bytes = 0;
    for (const auto* loads : {&out_, &in_}) {
      for (const Load& load : *loads) most_bytes = std::max(most_bytes, load.bytes);
    }
    const std::int64_t end_ps = now_ps + limits_.round_ps + most_bytes * limits_.ps_per_byte;
    for (const TaskId send : round.sends) finish(send, end_ps);
    for (const auto& reduce : round.reduces) {
      for (const TaskId task : reduce) finish(task, end_ps);
    }
    return end_ps;
  }

  bool fits(const Load& load, std::int64_t bytes) const {
    return load.messages == 0 ||
           (load.messages < limits_.messages && load.bytes + bytes <= limits_.bytes);
  }

  static void add(Load& load, std::int64_t bytes) {
    load.bytes += bytes;
    ++load.messages;
  }

  bool take_message(Round& round, TaskId id) {
    const Task& task = graph_[id];
    Load& out = out_[task.node];
    Load& in = in_[graph_.peer(task)];
    if (!round.reduces.empty() || !fits(out, task.amount) || !fits(in, task.amount)) return false;
    add(out, task.amount);
    add(in, task.amount);
    round.sends.push_back(id);
    return true;
  }

  bool take_reduce(Round& round, TaskId id) {
    const std::int64_t bytes = casync::bytes_sent(graph_, graph_[id]);
    if (!round.sends.empty() || !fits(out_.front(), bytes)) return false;
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      add(out_[node], bytes);
      add(in_[node], bytes);
    }
    round.reduces.push_back(reduces_.at(slice_of(id)).tasks);
    return true;
  }

  const TaskGraph& graph_;
  const RoundLimits& limits_;
  std::vector<std::uint32_t> waits_for_;
  std::vector<std::int64_t> ready_ps_;
  std::vector<TaskId> computed_next_;  ///< per computation: the next one on its node
  std::vector<Load> out_, in_;         ///< per node
  std::map<SliceKey, Reduce> reduces_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  std::vector<Round> rounds_;
};

}  // namespace

std::vector<Round> derive_rounds(const TaskGraph& graph, const RoundLimits& limits) {
  return Rounds(graph, limits).derive();
}

}  // namespace hipress::runtime
