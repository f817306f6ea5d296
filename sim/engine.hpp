#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.hpp"
#include "sim/sharing.hpp"
#include "sim/simulator.hpp"
#include "sim/waiting.hpp"

namespace hipress::sim {

/// What both networks need of the engine's state.
struct Core {
  Core(const TaskGraph& task_graph, const TaskCosts& task_costs, const costs::Cluster& machines,
       const Options& run_options);

  const TaskGraph& graph;
  const TaskCosts& costs;
  const costs::Cluster& cluster;
  const Options& options;
  std::int64_t overhead;  // o, picoseconds
  std::int64_t latency;   // L, picoseconds
  bool shared_cores;

  std::int64_t now = 0;
  EventQueue events;
  Sharing sharing;
  ServiceOrder order;
  std::vector<std::uint32_t> host_cores;  // per node: the capacity of its host's cores
  Result result;

  /// Picoseconds that a message takes alone: o + bytes/B.
  std::int64_t message_work(const Task& send) const {
    return overhead +
           casync::from_seconds(static_cast<double>(send.amount) / cluster.link.bandwidth).count();
  }
  /// CPU work of a message, both ends together, in seconds.
  double core_s(const Task& send) const {
    return cluster.link.core_s_per_message +
           cluster.link.core_s_per_byte * static_cast<double>(send.amount);
  }
  /// Adds the cores that a message of that work keeps busy at both ends while it moves at full
  /// speed.
  void add_core_uses(const Task& send, std::int64_t work, Sharing::Uses& uses) const;
  /// The weight of flows against threads of weight 1, so that every thread gets the same share of a
  /// core.
  double flow_weight = 1;

  /// Starts a task now that was given its resources.
  void start(TaskId id, std::int64_t work, double weight, const Sharing::Uses& uses) {
    if (options.record_timeline) result.timeline.start[id] = casync::Picoseconds(now);
    if (uses.count == 0) {
      events.push({now + work, id, 0});
    } else {
      sharing.start(id, work, weight, uses, now);
    }
  }
};

/// Throws io::RunError that names up to ten tasks that can never start, and what each waits for.
[[noreturn]] void report_stuck(const TaskGraph& graph, const std::vector<std::uint32_t>& waiting);

/// A network decides when a waiting Send may start and at which speed it goes:
///   explicit Transfers(Core&);
///   void add(TaskId send);       // it is ready
///   void finish(TaskId send);    // its message has left
///   void dispatch();             // start what may start at this instant

/// Runs a graph in virtual time. Time stands at an instant until nothing more happens in it:
/// first everything that ends is ended and what thereby becomes ready is queued, then idle
/// resources take the first of their queues; tasks of no length start another round. So what is
/// started depends on the set of ready tasks alone, never on the order in which events of one
/// instant come.
template <class Transfers>
class Engine {
 public:
  Engine(const TaskGraph& graph, const TaskCosts& costs, const costs::Cluster& cluster,
         const Options& options)
      : core_(graph, costs, cluster, options),
        transfers_(core_),
        streams_(2 * graph.nodes),
        waiting_(graph.tasks(), 0) {
    for (const TaskId target : graph.graph.m_forward.m_column) ++waiting_[target];
  }

  Result run() {
    for (TaskId id = 0; id < core_.graph.tasks(); ++id) {
      if (waiting_[id] == 0) make_ready(id);
    }
    dispatch();
    while (!core_.events.empty()) {
      core_.now = core_.events.top().time;
      do {
        take(core_.events.pop());
      } while (!core_.events.empty() && core_.events.top().time == core_.now);
      dispatch();
    }
    if (done_ < core_.graph.tasks()) report_stuck(core_.graph, waiting_);
    return std::move(core_.result);
  }

 private:
  /// A serial resource of one node: its compute stream or its codec stream.
  struct Stream {
    WaitingTasks waiting;
    bool busy = false;
    bool touched = false;
  };

  void take(const Event& event) {
    if (event.version == 0) {
      finish(event.subject);
    } else if (!core_.sharing.stale(event)) {
      finish(core_.sharing.finish(event.subject));
    }
  }

  void finish(TaskId id) {
    ++done_;
    core_.result.iteration = casync::Picoseconds(core_.now);
    const Task& task = core_.graph[id];
    if (core_.options.record_timeline)
      core_.result.timeline.end[id] = casync::Picoseconds(core_.now);
    if (task.kind == casync::Kind::kSend) {
      core_.result.bytes_sent[task.node] += task.amount;
      transfers_.finish(id);
    } else if (task.kind != casync::Kind::kRecv) {
      const std::uint32_t stream = stream_of(task);
      streams_[stream].busy = false;
      touch(stream);
      if (task.kind == casync::Kind::kBackward)
        core_.result.compute = casync::Picoseconds(core_.now);
    }
    for (const TaskId next : casync::successors(core_.graph, id)) {
      if (--waiting_[next] == 0) make_ready(next);
    }
  }

  void make_ready(TaskId id) {
    const Task& task = core_.graph[id];
    switch (task.kind) {
      case casync::Kind::kRecv:
        return arrive(id);
      case casync::Kind::kSend:
        core_.order.set_ready(id, core_.now);
        return transfers_.add(id);
      default: {
        core_.order.set_ready(id, core_.now);
        const std::uint32_t stream = stream_of(task);
        streams_[stream].waiting.add(id, core_.order);
        touch(stream);
      }
    }
  }

  /// The message is on the wire for L; a Recv has no length.
  void arrive(TaskId recv) {
    if (core_.options.record_timeline) {
      core_.result.timeline.start[recv] = casync::Picoseconds(core_.now + core_.latency);
    }
    if (core_.latency > 0) {
      core_.events.push({core_.now + core_.latency, recv, 0});
    } else {
      finish(recv);
    }
  }

  static std::uint32_t stream_of(const Task& task) {
    const bool computes =
        task.kind == casync::Kind::kForward || task.kind == casync::Kind::kBackward;
    return 2 * task.node + (computes ? 0 : 1);
  }

  void touch(std::uint32_t stream) {
    if (streams_[stream].touched) return;
    streams_[stream].touched = true;
    touched_.push_back(stream);
  }

  void dispatch() {
    for (const std::uint32_t index : touched_) {
      Stream& stream = streams_[index];
      stream.touched = false;
      if (stream.busy || stream.waiting.empty()) continue;
      stream.busy = true;
      run_on_stream(stream.waiting.take_first(core_.order));
    }
    touched_.clear();
    transfers_.dispatch();
    core_.sharing.settle(core_.now, core_.events);
  }

  void run_on_stream(TaskId id) {
    const Task& task = core_.graph[id];
    const bool computes = stream_of(task) % 2 == 0;
    Sharing::Uses uses;
    if (core_.shared_cores && (!computes || core_.options.backward_cores == BackwardCores::kOne)) {
      uses.add(core_.host_cores[task.node], 1);
    }
    core_.start(id, stream_work(task, computes), 1, uses);
  }

  std::int64_t stream_work(const Task& task, bool computes) const {
    const std::int64_t nominal = computes ? task.amount : core_.costs.codec_time(task).count();
    const double speed = core_.cluster.compute_speed[task.node];
    return speed == 1 ? nominal
                      : static_cast<std::int64_t>(static_cast<double>(nominal) / speed + 0.5);
  }

  Core core_;
  Transfers transfers_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> waiting_;  // predecessors not done
  std::vector<std::uint32_t> touched_;
  std::uint32_t done_ = 0;
};

}  // namespace hipress::sim
