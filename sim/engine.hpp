#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "costs/host_pairs.hpp"
#include "sim/event_queue.hpp"
#include "sim/run.hpp"
#include "sim/sharing.hpp"
#include "sim/task_costs.hpp"
#include "sim/turns.hpp"
#include "sim/waiting.hpp"
#include "sim/works.hpp"

namespace hipress::sim {

/// Cache of recently computed works, since most slices of a gradient are equal. Direct-mapped; a
/// collision overwrites.
class WorkMemo {
 public:
  /// Returns the cached work for this amount and sort of task, or computes it with `work()`.
  template <class Work>
  std::int64_t of(std::int64_t amount, std::uint32_t sort, Work work) {
    const std::uint64_t hash = (static_cast<std::uint64_t>(amount) + sort) * 0x9e3779b97f4a7c15u;
    Entry& entry = entries_[hash >> 58];
    if (entry.amount != amount || entry.sort != sort) entry = {amount, work(), sort};
    return entry.work;
  }

 private:
  struct Entry {
    std::int64_t amount = -1;
    std::int64_t work = 0;
    std::uint32_t sort = 0;
  };
  std::array<Entry, 64> entries_;
};

/// Throw io::InputError: the end of the run (report_endless), or a node's sum of bytes
/// (report_uncountable), does not fit.
[[noreturn]] void report_endless();
[[noreturn]] void report_uncountable(const Task& task);

/// State that the engine shares with its network (PortNetwork or FairNetwork).
struct Core {
  Core(const TaskGraph& task_graph, const TaskCosts& task_costs, const costs::Cluster& machines,
       const Options& run_options);

  const TaskGraph& graph;
  const costs::Cluster& cluster;
  const costs::HostPairs slow_links;
  const Options& options;
  /// Parameters of a message's share of the links on a path.
  struct PathCosts {
    double use = 1;  // share of the first link that a message uses at full speed
    // Weights against other messages, and against threads on shared cores; index:
    // casync::interrupts() of the message.
    std::array<double, 2> weights = {1, 1};

    double weight_of(const Task& send) const { return weights[casync::interrupts(send)]; }
  };
  std::array<PathCosts, costs::kPaths> paths;  // set only for paths that the cluster has
  Works works;
  bool hierarchical;
  bool shared_cores;
  const casync::Computing& computing;  // the graph's use of shared cores and memory
  bool overlaps;                       // concurrent activities on a node slow each other
  bool one_path = !hierarchical && cluster.slow_links.empty();  // all messages have the same path
  bool undisturbed = !shared_cores && !overlaps;  // tasks run at full speed, except on shared links

  std::int64_t now = 0;
  EventQueue events;
  Sharing sharing;
  WaitingQueue::Sorter sorter;
  std::vector<std::uint32_t> host_cores;   // per node: index in `sharing` of its host's cores
  std::vector<std::uint32_t> host_memory;  // per node: index in `sharing` of its host's memory;
                                           // empty: not shared
  struct OfGroup {
    costs::GroupNetwork ring, exchange;
  };
  std::vector<OfGroup> groups;  // per group of the graph
  /// Two capacities per node, which collectives share on hosts of a machine: its port into the
  /// fabric, and its part of the host's cards. If empty, collectives take turns on a network.
  std::vector<std::uint32_t> group_ports;
  const costs::GroupNetwork& network_of(const Task& task) const {
    const OfGroup& group = groups[task.group];
    return task.kind == casync::Kind::kAllToAll ? group.exchange : group.ring;
  }
  Result result;

  /// Node whose ingress a message uses.
  std::uint32_t receiver(const Task& send) const {
    if (graph.folded) return 0;
    const std::uint32_t sum = send.node + send.peer_offset;
    return sum < graph.nodes ? sum : sum - graph.nodes;
  }
  /// Path of an all-reduce or a message; `message` is its Send or Recv.
  costs::Path path_of(const Task& message) const {
    return hierarchical ? costs::path(cluster, message.node, graph.peer(message))
                        : costs::Path::kBetweenHosts;
  }
  /// Index of the slow link that a message passes, if any.
  std::optional<std::uint32_t> slow_link_of(const Task& message) const {
    if (cluster.slow_links.empty()) return std::nullopt;
    return slow_links.find(cluster.host[message.node], cluster.host[graph.peer(message)]);
  }
  std::int64_t latency_of(const Task& message) const {
    if (one_path) return works.latency(costs::Path::kBetweenHosts);
    const std::optional<std::uint32_t> slow = slow_link_of(message);
    return slow ? works.slow_latency(*slow) : works.latency(path_of(message));
  }
  const PathCosts& costs_of(costs::Path path) const {
    return paths[static_cast<std::size_t>(path)];
  }
  /// Time in picoseconds of a message (o + bytes/B) or an all-reduce, if it runs alone.
  std::int64_t message_work(const Task& send, costs::Path path) {
    if (send.kind == casync::Kind::kAllReduce) return works.all_reduce(send);
    if (!one_path) {
      if (const auto slow = slow_link_of(send)) return works.slow_message(send, *slow);
    }
    return message_works.of(send.amount, static_cast<std::uint32_t>(path),
                            [&] { return works.message(send, path); });
  }
  WorkMemo message_works, codec_works;
  /// CPU time of a message, summed over both ends, in seconds.
  double core_s(const Task& send, const costs::LinkCosts& link) const {
    return link.core_s(static_cast<double>(send.amount), casync::interrupts(send));
  }
  /// Adds the cores that a message keeps busy at both ends if its `work` runs at full speed.
  /// `weight` is its weight on links; returns its weight on links and cores.
  double add_core_uses(const Task& send, costs::Path path, std::int64_t work, double weight,
                       Sharing::Uses& uses) const;
  /// Adds the host's cores and memory that a stream's task uses at full speed. Returns its weight.
  double add_host_uses(const Task& task, std::int64_t work, Sharing::Uses& uses) const;
  /// Number of cores that a stream's task keeps busy at full speed; 0 if hosts do not share cores.
  double cores_of(const Task& task) const {
    if (!shared_cores || casync::is_local(task)) return 0;
    return casync::is_computation(task) ? computing.cores(task) : 1;
  }
  /// Link that carries a transfer: the slowest on its path.
  costs::LinkCosts link_of(const Task& transfer) const;
  /// Work of a task after jitter, for a nominal `work`. Jitter makes no link faster: the result is
  /// at least the time of the bytes at its rate, or `work` if a burst makes that shorter.
  std::int64_t jittered(TaskId id, std::int64_t work) const {
    return options.jitter == nullptr ? work : drawn(id, work);
  }
  std::int64_t drawn(TaskId id, std::int64_t work) const;
  void add_path(costs::Path path);
  void add_groups();
  /// Adds a capacity of `amount` per host. Returns, per node, the index of its host's capacity.
  std::vector<std::uint32_t> add_to_hosts(double amount);
  Sharing::Place place_of(const Task& task) const;
  /// Prefetches the memory that finish() reads: the task's list of successors, and the successors
  /// themselves, which mostly follow it.
  void prefetch_end(TaskId id) const {
    __builtin_prefetch(casync::successors(graph, id).data());
    __builtin_prefetch(&graph[id] + 2);
    __builtin_prefetch(&graph[id] + 4);
  }
  /// Starts a task now; its stream or ports are free.
  void start(TaskId id, std::int64_t work, double weight, const Sharing::Uses& uses) {
    if (!overlaps && uses.count == 0) return start_undisturbed(id, work);
    note_start(id);
    if (overlaps) {
      sharing.start(id, work, weight, uses, now, place_of(graph[id]));
    } else {
      sharing.start(id, work, weight, uses, now);
    }
  }
  /// Starts a task that ends after `work`, no matter what else runs.
  void start_undisturbed(TaskId id, std::int64_t work) {
    note_start(id);
    events.push(now + work, id, 0);
  }
  void note_start(TaskId id) {
    if (options.record_timeline) result.timeline.start[id] = casync::Picoseconds(now);
    prefetch_end(id);
  }
};

/// Throws io::RunError that names up to ten tasks that can never start, and what each waits for.
[[noreturn]] void report_stuck(const TaskGraph& graph, const std::vector<std::uint32_t>& waiting);

/// Throws io::InputError that names the impossible property of a task: its node, peer or amount.
[[noreturn]] void report_impossible(const TaskGraph& graph, TaskId id);

/// A network decides when a waiting Send may start and at which speed it goes:
///   explicit Transfers(Core&);
///   void add(TaskId send);       // it is ready
///   void finish(TaskId send);    // its message has left
///   void dispatch();             // start what may start at this instant
///   std::size_t bytes() const;   // of its queues

/// True for tasks that occupy an egress and an ingress port. An AllReduce occupies its node's
/// egress and the next node's ingress, as a message to that node would; the AllReduces of all nodes
/// together occupy both ports of every node.
inline bool occupies_ports(const Task& task) {
  return task.kind == casync::Kind::kSend || task.kind == casync::Kind::kAllReduce;
}

/// Runs a graph in virtual time. Each instant is processed in rounds. A round first ends all tasks
/// that are due and queues those that become ready; then each idle resource starts the first task
/// of its queue. Tasks of zero length cause another round. Starts therefore depend only on the set
/// of ready tasks, never on the order of events within an instant.
///
/// `kGroups` is true for sharded schedules, whose collectives run on the networks of their groups.
template <class Transfers, bool kGroups = false>
class EventEngine {
 public:
  EventEngine(const TaskGraph& graph, const TaskCosts& costs, const costs::Cluster& cluster,
              const Options& options)
      : core_(graph, costs, cluster, options),
        transfers_(core_),
        turns_(cluster),
        streams_(3 * graph.representatives()),
        group_links_(kGroups ? 2 * graph.representatives() : 0),
        computed_(kGroups ? graph.representatives() : 0),
        computing_since_(computed_.size()),
        waiting_(graph.predecessors),
        touched_(streams_.size()) {}

  Result run() {
    constexpr std::uint32_t kInstantsPerQuestion = 64;
    std::uint32_t instants = 0;
    for (const TaskId id : sources()) make_ready(id);
    dispatch();
    while (!core_.events.empty()) {
      core_.now = core_.events.next_time();
      if (core_.now >= Sharing::kNever) report_endless();
      if (++instants % kInstantsPerQuestion == 0 && core_.options.stop && core_.options.stop()) {
        throw Stopped();
      }
      do {
        take(core_.events.pop());
      } while (!core_.events.empty() && core_.events.next_time() == core_.now);
      dispatch();
    }
    if (done_ < core_.graph.tasks()) report_stuck(core_.graph, waiting_);
    if (core_.graph.folded) {
      std::vector<std::int64_t>& bytes = core_.result.bytes_sent;
      std::fill(bytes.begin(), bytes.end(), bytes.front());
    }
    core_.result.state_bytes = bytes();
    return std::move(core_.result);
  }

 private:
  std::vector<TaskId> sources() const {
    std::vector<TaskId> ids;
    for (TaskId id = 0; id < core_.graph.tasks(); ++id) {
      if (waiting_[id] == 0) ids.push_back(id);
    }
    return ids;
  }

  /// A serial resource of one node: its compute stream, its codec stream or its GPUs' link.
  struct Stream {
    WaitingQueue waiting;
    bool busy = false;
    bool touched = false;
  };

  /// Event versions that do not end a task; no activity's version gets that high. kArrives: a
  /// message has arrived and needs a core. kGetsCore: its thread gets one.
  static constexpr std::uint32_t kArrives = ~std::uint32_t{0}, kGetsCore = kArrives - 1;
  /// kLeavesGroup: a collective leaves its network. kHasArrived: it ends, one latency later.
  static constexpr std::uint32_t kLeavesGroup = kGetsCore - 1, kHasArrived = kLeavesGroup - 1;

  void take(const Event& event) {
    if (event.version == 0) {
      finish(event.subject);
    } else if (event.version == kArrives) {
      for_a_core_.push_back(event.subject);
    } else if (event.version == kGetsCore) {
      go_on(event.subject);
    } else if (kGroups && event.version == kLeavesGroup) {
      leave_group(event.subject);
    } else if (kGroups && event.version == kHasArrived) {
      finish(event.subject);
    } else if (!core_.sharing.stale(event)) {
      const TaskId id = core_.sharing.finish(event.subject);
      if (kGroups && casync::is_of_group(core_.graph[id])) return leave_group(id);
      finish(id);
    }
  }

  void finish(TaskId id) {
    ++done_;
    core_.result.iteration = casync::Picoseconds(core_.now);
    const Task& task = core_.graph[id];
    if (core_.options.record_timeline)
      core_.result.timeline.end[id] = casync::Picoseconds(core_.now);
    if (occupies_ports(task)) {
      count_bytes(task);
      transfers_.finish(id);
    } else if (kGroups && casync::is_of_group(task)) {
      count_bytes(task);
    } else if (task.kind != casync::Kind::kRecv && !casync::is_instant(task)) {
      const std::uint32_t stream = stream_of(task);
      streams_[stream].busy = false;
      touched_.add(streams_[stream], stream);
      if (turns_.matter()) turns_.release(task.node, threads_on_cores(task));
      if (casync::is_computation(task)) note_computation(id);
    }
    std::uint32_t* const waiting = waiting_.data();  // saves a reload after make_ready()
    const std::span<const TaskId> successors = casync::successors(core_.graph, id);
    for (std::size_t i = 0; i < successors.size(); ++i) {
      if (i + kAhead < successors.size()) prefetch(successors[i + kAhead]);
      if (--waiting[successors[i]] == 0) make_ready(successors[i]);
    }
  }

  void count_bytes(const Task& task) {
    std::int64_t& bytes = core_.result.bytes_sent[core_.graph.representative(task.node)];
    const std::int64_t sent =
        task.kind == casync::Kind::kSend ? task.amount : casync::bytes_sent(core_.graph, task);
    if (__builtin_add_overflow(bytes, sent, &bytes)) {
      report_uncountable(task);
    }
  }

  /// A network on which a node's groups take turns, and the collectives that wait for it.
  struct GroupLink {
    std::vector<TaskId> waiting;  ///< by ready time, then id; those before `next` have started
    std::size_t next = 0;
    bool busy = false;
  };

  GroupLink& link_of_group(const Task& task) {
    const std::uint32_t node = core_.graph.representative(task.node);
    return group_links_[2 * node + (core_.network_of(task).within_host ? 1 : 0)];
  }

  void start_groups() {
    std::sort(ready_groups_.begin(), ready_groups_.end());
    if (!core_.group_ports.empty()) {
      for (const TaskId id : ready_groups_) share_ports(id);
      return ready_groups_.clear();
    }
    for (const TaskId id : ready_groups_) link_of_group(core_.graph[id]).waiting.push_back(id);
    for (const TaskId id : ready_groups_) start_next_on(link_of_group(core_.graph[id]));
    ready_groups_.clear();
    for (const TaskId id : left_groups_) start_next_on(link_of_group(core_.graph[id]));
    left_groups_.clear();
  }

  /// Starts a collective on ports that it shares with others: each gets the same bytes per second.
  void share_ports(TaskId id) {
    const Task& task = core_.graph[id];
    const std::int64_t work = core_.jittered(id, work_of_group(task).on_link);
    const auto [within, between] = core_.works.port_shares(
        task, core_.graph.groups[task.group].nodes, core_.network_of(task).link);
    Sharing::Uses uses;
    const std::uint32_t port = 2 * core_.graph.representative(task.node);
    if (within > 0) uses.add(core_.group_ports[port], within);
    if (between > 0) uses.add(core_.group_ports[port + 1], between);
    if (uses.count > 0) return core_.start(id, work, 1 / std::max(within, between), uses);
    core_.note_start(id);
    core_.events.push(core_.now + work, id, kLeavesGroup);
  }

  void start_next_on(GroupLink& link) {
    if (link.busy || link.next == link.waiting.size()) return;
    link.busy = true;
    const TaskId id = link.waiting[link.next++];
    const Task& task = core_.graph[id];
    const std::int64_t work = core_.jittered(id, work_of_group(task).on_link);
    if (core_.overlaps) return core_.start(id, work, 1, {.items = {}, .count = 0});
    if (core_.options.record_timeline) {
      core_.result.timeline.start[id] = casync::Picoseconds(core_.now);
    }
    core_.events.push(core_.now + work, id, kLeavesGroup);
  }

  Works::OfGroup work_of_group(const Task& task) const {
    return core_.works.of_group(task, core_.graph.groups[task.group].nodes,
                                core_.network_of(task).link);
  }

  /// Frees the network of a collective, and schedules its arrival.
  void leave_group(TaskId id) {
    const Task& task = core_.graph[id];
    if (core_.group_ports.empty()) {
      link_of_group(task).busy = false;
      left_groups_.push_back(id);
    }
    core_.events.push(core_.now + work_of_group(task).latency, id, kHasArrived);
  }

  /// Number of successors to prefetch ahead: a gradient has many, far apart in memory.
  static constexpr std::size_t kAhead = 8;
  void prefetch(TaskId id) const {
    __builtin_prefetch(&waiting_[id]);
    __builtin_prefetch(&core_.graph[id]);
  }

  void note_computation(TaskId id) {
    const Task& task = core_.graph[id];
    if (kGroups) {
      std::int64_t& computed = computed_[core_.graph.representative(task.node)];
      computed += core_.now - computing_since_[core_.graph.representative(task.node)];
      core_.result.compute = std::max(core_.result.compute, casync::Picoseconds(computed));
    } else if (task.kind == casync::Kind::kBackward) {
      core_.result.compute = casync::Picoseconds(core_.now);
    }
    if (!kGroups && task.kind != casync::Kind::kBackward && !forward_ended_) {
      forward_ended_ = true;
      core_.result.forward = casync::Picoseconds(core_.now);
    }
  }

  void make_ready(TaskId id) {
    const Task& task = core_.graph[id];
    if (task.node >= core_.graph.nodes || task.peer_offset >= core_.graph.nodes ||
        task.amount < 0) {
      report_impossible(core_.graph, id);
    }
    if (casync::is_instant(task)) return pass(id);
    switch (task.kind) {
      case casync::Kind::kRecv:
        return arrive(id);
      case casync::Kind::kSend:
        if (turns_.matter()) return for_a_core_.push_back(id);
        [[fallthrough]];
      case casync::Kind::kAllReduce:
        return transfers_.add(id);
      case casync::Kind::kAllGather:
      case casync::Kind::kReduceScatter:
      case casync::Kind::kAllToAll:
        if (kGroups) return ready_groups_.push_back(id);
        [[fallthrough]];
      default: {
        const std::uint32_t stream = stream_of(task);
        streams_[stream].waiting.add(id, core_.now, core_.sorter);
        touched_.add(streams_[stream], stream);
      }
    }
  }

  /// Starts and ends a task of zero length that waits for no resource.
  void pass(TaskId id) {
    if (core_.options.record_timeline) {
      core_.result.timeline.start[id] = casync::Picoseconds(core_.now);
    }
    finish(id);
  }

  /// Schedules a Recv after L, while its message is on the wire. The Recv itself takes no time.
  void arrive(TaskId recv) {
    const std::int64_t latency = core_.latency_of(core_.graph[recv]);
    if (turns_.matter()) return core_.events.push(core_.now + latency, recv, kArrives);
    if (core_.options.record_timeline) {
      core_.result.timeline.start[recv] = casync::Picoseconds(core_.now + latency);
    }
    if (latency > 0) {
      core_.events.push(core_.now + latency, recv, 0);
    } else {
      finish(recv);
    }
  }

  /// Makes the messages that became ready at this instant wait for a core. Must run after the
  /// streams have started their next tasks, which determine how many cores are busy.
  void wait_for_cores() {
    for (const TaskId id : for_a_core_) {
      const Task& task = core_.graph[id];
      const bool sends = task.kind == casync::Kind::kSend;
      const std::int64_t at =
          turns_.take(task.node, sends ? Turns::End::kSending : Turns::End::kReceiving, core_.now);
      if (sends && at == core_.now) {
        transfers_.add(id);
      } else {
        core_.events.push(at, id, kGetsCore);
      }
    }
    for_a_core_.clear();
  }

  void go_on(TaskId id) {
    if (core_.graph[id].kind == casync::Kind::kSend) {
      transfers_.add(id);
    } else {
      pass(id);
    }
  }

  /// Mean number of cores that a stream's task keeps busy, rounded.
  std::uint32_t threads_on_cores(const Task& task) const {
    return static_cast<std::uint32_t>(core_.cores_of(task) + 0.5);
  }

  std::uint32_t stream_of(const Task& task) const {
    const std::uint32_t node = core_.graph.representative(task.node);
    if (casync::is_local(task)) return 2 * core_.graph.representatives() + node;
    return 2 * node + (casync::is_computation(task) ? 0 : 1);
  }

  void dispatch() {
    for (const std::uint32_t index : touched_.indices()) {
      Stream& stream = streams_[index];
      stream.touched = false;
      if (stream.busy || stream.waiting.empty()) continue;
      stream.busy = true;
      run_on_stream(stream.waiting.take_first(core_.sorter).id);
    }
    touched_.clear();
    if (kGroups) start_groups();
    wait_for_cores();
    transfers_.dispatch();
    core_.sharing.settle(core_.now, core_.events);
  }

  void run_on_stream(TaskId id) {
    const Task& task = core_.graph[id];
    const bool computes = casync::is_computation(task);
    if (kGroups && computes) {
      computing_since_[core_.graph.representative(task.node)] = core_.now;
    }
    const std::int64_t work = stream_work(task, computes);
    if (core_.undisturbed) return core_.start_undisturbed(id, core_.jittered(id, work));
    Sharing::Uses uses;
    const double weight = core_.add_host_uses(task, work, uses);
    if (turns_.matter()) turns_.occupy(task.node, threads_on_cores(task));
    core_.start(id, core_.jittered(id, work), weight, uses);
  }

  std::int64_t codec_work(const Task& task) {
    if (casync::codes_factors(task)) {
      return core_.works.codec(task, core_.graph.factors_of_unit(task.gradient));
    }
    const std::uint32_t flags = task.flags & (casync::kAccumulate | casync::kDivideOwn);
    const auto sort = static_cast<std::uint32_t>(task.kind) | flags << 8 |
                      static_cast<std::uint32_t>(static_cast<std::uint8_t>(task.algorithm)) << 16;
    return core_.codec_works.of(task.amount, sort, [&] { return core_.works.codec(task); });
  }

  std::int64_t stream_work(const Task& task, bool computes) {
    if (casync::is_local(task)) return core_.works.local(task);
    const std::int64_t nominal = computes ? core_.works.computation(task) : codec_work(task);
    return core_.works.at_speed(task, nominal, core_.cluster.compute_speed[task.node]);
  }

  /// Bytes of the graph, and of the engine's queues at their peak.
  std::int64_t bytes() const {
    std::size_t sum = waiting_.capacity() * sizeof(std::uint32_t) + core_.events.bytes() +
                      transfers_.bytes() + streams_.capacity() * sizeof(Stream);
    for (const Stream& stream : streams_) sum += stream.waiting.bytes();
    return graph_bytes(core_.graph) + static_cast<std::int64_t>(sum);
  }

  Core core_;
  Transfers transfers_;
  Turns turns_;
  std::vector<TaskId> for_a_core_;  // messages that began to wait for a core at this instant
  std::vector<Stream> streams_;
  std::vector<GroupLink> group_links_;  // per representative, two: between hosts, within its host
  std::vector<TaskId> ready_groups_, left_groups_;  // collectives that became ready, or left, at
                                                    // this instant
  // Sharded schedules, per representative: time computed so far, and the running task's start.
  std::vector<std::int64_t> computed_, computing_since_;
  std::vector<std::uint32_t> waiting_;  // number of unfinished predecessors
  Touched touched_;
  std::uint32_t done_ = 0;
  bool forward_ended_ = false;  // the forward pass has ended on at least one node
};

}  // namespace hipress::sim
