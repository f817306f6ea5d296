#include "tests/sim/reference.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

namespace hipress::sim {
namespace {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;
using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

enum class State : std::uint8_t {
  kBlocked,   // a predecessor has not ended
  kFlying,    // Recv: on the wire, and will then wait for a core
  kQueued,    // message: begins to wait for its next thread
  kTurn,      // message: its thread waits for a core
  kWaiting,   // waits for its resources
  kOffered,   // network port: holds its egress, and waits for the ingress
  kRunning,   // on its resources; or Recv on the wire, if it will not wait for a core
  kArriving,  // collective: has left its node's network
  kDone,
};

/// Speed as sim/sharing.hpp specifies it: exactly 1/n, or in units of 2^-32.
struct Speed {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  bool operator==(const Speed&) const = default;
};

/// Links between two nodes.
struct Way {
  bool within_host = false;
  std::size_t levels = 0;  // number of levels whose racks it leaves
  costs::LinkCosts link;   // costs of the slowest link, with the sum of latencies
  double part = 1;         // share of the first link's bandwidth that a message can use
};

/// Use of a capacity by a running task: the capacity's name, and the amount at full speed.
struct Use {
  std::string capacity;
  double amount = 1;
};

struct Status {
  State state = State::kBlocked;
  std::int64_t ready = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  // Set while it runs.
  std::vector<Use> uses;
  double weight = 1;
  std::int64_t remaining = 0;  // work left at `updated`
  std::int64_t updated = 0;
  Speed speed;
};

class Reference {
 public:
  Reference(const TaskGraph& graph, const TaskCosts& costs, const costs::Cluster& cluster,
            const Options& options)
      : graph_(graph), costs_(costs), cluster_(cluster), options_(options), tasks_(graph.tasks()) {}

  traces::Timeline run() {
    while (true) {
      end_tasks();
      start_tasks();
      solve_speeds();
      std::optional<std::int64_t> next;
      for (const Status& task : tasks_) {
        const bool ends = task.state == State::kRunning || task.state == State::kFlying ||
                          task.state == State::kTurn || task.state == State::kArriving;
        if (ends && (!next || task.end < *next)) next = task.end;
      }
      if (!next) break;
      now_ = *next;
    }
    return timeline();
  }

 private:
  traces::Timeline timeline() const {
    traces::Timeline times;
    for (const Status& task : tasks_) {
      if (task.state != State::kDone) throw std::logic_error("a task cannot finish");
      times.start.push_back(Picoseconds(task.start));
      times.end.push_back(Picoseconds(task.end));
    }
    return times;
  }

  bool is_ready(TaskId id) const {
    for (TaskId other = 0; other < graph_.tasks(); ++other) {
      if (tasks_[other].state == State::kDone) continue;
      for (const TaskId next : casync::successors(graph_, other)) {
        if (next == id) return false;
      }
    }
    return true;
  }

  /// Ends tasks that are due, and makes their successors ready. A Recv ends L after its Send.
  void end_tasks() {
    for (bool again = true; again;) {
      again = false;
      for (TaskId id = 0; id < graph_.tasks(); ++id) {
        Status& task = tasks_[id];
        if (task.state == State::kRunning && task.end == now_ && casync::is_of_group(graph_[id])) {
          task.state = State::kArriving;
          task.end = now_ + latency_in_group(graph_[id]);
          again = true;
        } else if (task.state == State::kArriving && task.end == now_) {
          task.state = State::kDone;
          again = true;
        } else if (task.state == State::kRunning && task.end == now_) {
          task.state = State::kDone;
          again = true;
        } else if (task.state == State::kFlying && task.end == now_) {
          task.state = State::kQueued;
        } else if (task.state == State::kTurn && task.end == now_) {
          const bool sends = graph_[id].kind == Kind::kSend;
          task.state = sends ? State::kWaiting : State::kDone;
          task.ready = task.start = now_;
          again = true;
        } else if (task.state == State::kBlocked && casync::is_instant(graph_[id]) &&
                   is_ready(id)) {
          task.state = State::kDone;
          task.ready = task.start = task.end = now_;
          again = true;
        } else if (task.state == State::kBlocked && is_ready(id)) {
          task.state = State::kWaiting;
          task.ready = now_;
          if (takes_turns() && graph_[id].kind == Kind::kSend) task.state = State::kQueued;
          if (graph_[id].kind != Kind::kRecv) continue;
          task.state = takes_turns() ? State::kFlying : State::kRunning;
          task.start = task.end =
              now_ + casync::from_seconds(way_of(graph_[id]).link.latency_s).count();
          again = true;
        }
      }
    }
  }

  bool takes_turns() const { return cluster_.cores_per_host > 0 && cluster_.core_turn_s > 0; }

  /// Number of threads that keep a core of the node's host.
  int busy_threads(std::uint32_t node) const {
    int busy = 0;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (tasks_[id].state != State::kRunning || transfers(graph_[id])) continue;
      if (cluster_.host[graph_[id].node] != cluster_.host[node]) continue;
      busy += static_cast<int>(cores_busy(graph_[id]) + 0.5);
    }
    return busy;
  }

  /// Makes messages wait for a core. With k threads on c <= k cores, a message waits (k/c - 1/2)
  /// turns to be sent, and twice that to be received. If other messages already wait at the same
  /// end of its node (sending or receiving), it gets its core together with them instead.
  void queue_for_cores() {
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (tasks_[id].state != State::kQueued) continue;
      const Task& message = graph_[id];
      std::int64_t at = now_;
      const double per_core =
          static_cast<double>(busy_threads(message.node)) / cluster_.cores_per_host;
      const int waits = message.kind == Kind::kSend ? 1 : 2;
      if (per_core >= 1)
        at += casync::from_seconds(waits * cluster_.core_turn_s * (per_core - 0.5)).count();
      for (TaskId other = 0; other < graph_.tasks(); ++other) {
        const bool together = tasks_[other].state == State::kTurn && tasks_[other].end > now_ &&
                              graph_[other].node == message.node &&
                              graph_[other].kind == message.kind;
        if (together) at = tasks_[other].end;
      }
      const bool at_once = at == now_ && message.kind == Kind::kSend;
      tasks_[id].state = at_once ? State::kWaiting : State::kTurn;
      tasks_[id].end = at;
    }
  }

  static bool computes(const Task& task) {
    return task.kind == Kind::kForward || task.kind == Kind::kBackward;
  }

  static bool transfers(const Task& task) {
    return task.kind == Kind::kSend || task.kind == Kind::kAllReduce;
  }

  auto service_key(TaskId id) const {
    const Task& task = graph_[id];
    const bool by_need = options_.transfer_order == TransferOrder::kNeed && transfers(task);
    const std::int64_t need = by_need ? -std::int64_t{graph_.need(task)} : 0;
    return std::tuple(need, tasks_[id].ready, task.gradient, task.peer_offset, task.partition,
                      task.kind, id);
  }

  /// First task in the order of service for which `is_candidate` is true.
  template <class Candidate>
  std::optional<TaskId> first(Candidate is_candidate) const {
    std::optional<TaskId> best;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (!is_candidate(id)) continue;
      if (!best || service_key(id) < service_key(*best)) best = id;
    }
    return best;
  }

  bool exists(State state, auto holds) const {
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (tasks_[id].state == state && holds(graph_[id])) return true;
    }
    return false;
  }

  void start_tasks() {
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      for (const Stream stream : {Stream::kCompute, Stream::kCodec, Stream::kLocal}) {
        start_on_stream(node, stream);
      }
    }
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) start_in_group(node);
    queue_for_cores();
    if (options_.network == Network::kPort) {
      for (std::uint32_t node = 0; node < graph_.nodes; ++node) offer(node);
      for (std::uint32_t node = 0; node < graph_.nodes; ++node) accept(node);
    } else {
      for (std::uint32_t from = 0; from < graph_.nodes; ++from) {
        for (std::uint32_t to = 0; to < graph_.nodes; ++to) start_on_flow(from, to);
      }
    }
  }

  std::int64_t time_in_group(const Task& task) const {
    return costs_.group_time(task, graph_.groups[task.group].nodes, cluster_.link).count();
  }

  /// Latency of a collective: a ring waits L for each message, an exchange once for all.
  std::int64_t latency_in_group(const Task& task) const {
    const std::int64_t nodes = graph_.groups[task.group].nodes;
    const std::int64_t waits = task.kind == Kind::kAllToAll ? 1 : nodes - 1;
    return casync::from_seconds(static_cast<double>(waits) * cluster_.link.latency_s).count();
  }

  /// Starts the next collective on a node's network, which serves collectives one at a time, in
  /// order of ready time. The latency at a collective's end does not occupy the network.
  void start_in_group(std::uint32_t node) {
    const auto of_node = [&](const Task& task) {
      return casync::is_of_group(task) && task.node == node;
    };
    if (exists(State::kRunning, of_node)) return;
    std::optional<TaskId> next;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (tasks_[id].state != State::kWaiting || !of_node(graph_[id])) continue;
      if (!next || tasks_[id].ready < tasks_[*next].ready) next = id;
    }
    if (!next) return;
    const Task& task = graph_[*next];
    start(*next, time_in_group(task) - latency_in_group(task), 1, {});
  }

  enum class Stream : std::uint8_t { kCompute, kCodec, kLocal };
  static Stream stream_of(const Task& task) {
    if (casync::is_local(task)) return Stream::kLocal;
    return computes(task) ? Stream::kCompute : Stream::kCodec;
  }

  std::int64_t codec_work(const Task& task) const {
    Task shard = task;  // the largest of G nearly equal shards
    shard.amount = task.amount / cluster_.gpus_per_node;
    if (task.amount % cluster_.gpus_per_node > 0) ++shard.amount;
    return costs_.codec_time(shard, graph_.divisor).count();
  }

  /// Work of an all-reduce: the library's time for its bytes, plus, if it casts to half precision,
  /// an encode and a decode of bytes / 2 elements.
  std::int64_t library_work(const Task& reduce) const {
    const Task sum{.amount = reduce.amount, .kind = Kind::kAllReduce};
    std::int64_t work = costs_.all_reduce_time(sum, graph_.nodes, ring()).count();
    for (const Kind kind : {Kind::kEncode, Kind::kDecode}) {
      const Task cast{.amount = reduce.amount / 2,
                      .kind = kind,
                      .algorithm = reduce.algorithm,
                      .flags = reduce.flags};
      if (reduce.algorithm != casync::kRaw) work += codec_work(cast);
    }
    return work;
  }

  std::int64_t time_on_stream(const Task& task) const {
    const double gpus = cluster_.gpus_per_node;
    double nominal = 0;
    if (casync::is_local(task)) {
      const double each = static_cast<double>(task.amount) / cluster_.gpu_link.bandwidth;
      return casync::from_seconds((gpus - 1) * cluster_.gpu_link.overhead_s +
                                  (gpus - 1) / gpus * each)
          .count();
    }
    if (computes(task)) {
      nominal = static_cast<double>(task.amount);
    } else {
      nominal = static_cast<double>(codec_work(task));
    }
    return static_cast<std::int64_t>(nominal / cluster_.compute_speed[task.node] + 0.5);
  }

  void start_on_stream(std::uint32_t node, Stream stream) {
    const auto on_stream = [&](const Task& task) {
      return task.node == node && !transfers(task) && !casync::is_of_group(task) &&
             task.kind != Kind::kRecv && stream_of(task) == stream;
    };
    if (exists(State::kRunning, on_stream)) return;
    const auto id = first([&](TaskId candidate) {
      return tasks_[candidate].state == State::kWaiting && on_stream(graph_[candidate]);
    });
    if (!id) return;
    const std::int64_t work = time_on_stream(graph_[*id]);
    const std::vector<Use> uses = uses_of_host(graph_[*id], work);
    const double busy = cores_busy(graph_[*id]);
    start(*id, work, computes(graph_[*id]) && busy > 0 ? computing().threads / busy : 1, uses);
  }

  const casync::Computing& computing() const {
    return options_.computing ? *options_.computing : graph_.computing;
  }

  /// Number of cores that a task keeps busy at full speed; 0 if hosts do not share cores.
  double cores_busy(const Task& task) const {
    if (cluster_.cores_per_host == 0 || casync::is_local(task)) return 0;
    if (!computes(task)) return 1;
    if (task.kind == Kind::kForward) return computing().forward;
    const std::vector<double>& of_gradients = computing().of_gradients;
    return task.gradient < of_gradients.size() ? of_gradients[task.gradient] : computing().backward;
  }

  /// Share of the host's memory bandwidth. A Merge reads two fp32 values and writes one.
  double memory_share(const Task& task, std::int64_t work) const {
    const double bandwidth = cluster_.host_memory_bandwidth;
    const bool shared = cluster_.cores_per_host > 0 && computing().memory_traffic > 0;
    if (!shared || bandwidth == 0 || work == 0) return 0;
    double bytes_per_s = computes(task) ? computing().memory_traffic : 0;
    if (task.kind == Kind::kMerge) {
      bytes_per_s = 12 * static_cast<double>(task.amount) / casync::to_seconds(Picoseconds(work));
    }
    return std::min(1.0, bytes_per_s / bandwidth);
  }

  std::vector<Use> uses_of_host(const Task& task, std::int64_t work) const {
    std::vector<Use> uses;
    if (const double share = memory_share(task, work); share > 0) {
      uses.push_back({"memory " + std::to_string(cluster_.host[task.node]), share});
    }
    if (const double busy = cores_busy(task); busy > 0) uses.push_back({cores_of(task.node), busy});
    return uses;
  }

  /// A free egress takes the first of its waiting Sends, and holds it.
  void offer(std::uint32_t node) {
    const auto sends = [&](const Task& task) { return transfers(task) && task.node == node; };
    if (exists(State::kOffered, sends) || exists(State::kRunning, sends)) return;
    const auto id = first([&](TaskId candidate) {
      return tasks_[candidate].state == State::kWaiting && sends(graph_[candidate]);
    });
    if (id) tasks_[*id].state = State::kOffered;
  }

  /// A free ingress takes the first message that is held for it.
  void accept(std::uint32_t node) {
    const auto comes = [&](const Task& task) {
      return transfers(task) && graph_.peer(task) == node;
    };
    if (exists(State::kRunning, comes)) return;
    const auto id = first([&](TaskId candidate) {
      return tasks_[candidate].state == State::kOffered && comes(graph_[candidate]);
    });
    if (id) start_message(*id, {});
  }

  /// Starts the next message of a flow, which carries one at a time.
  void start_on_flow(std::uint32_t from, std::uint32_t to) {
    const auto in_flow = [&](const Task& task) {
      return transfers(task) && task.node == from && graph_.peer(task) == to;
    };
    if (exists(State::kRunning, in_flow)) return;
    const auto id = first([&](TaskId candidate) {
      return tasks_[candidate].state == State::kWaiting && in_flow(graph_[candidate]);
    });
    if (!id) return;
    start_message(*id, uses_of_links(graph_[*id]));
  }

  std::vector<Use> uses_of_links(const Task& send) const {
    const std::uint32_t to = graph_.peer(send);
    const Way way = way_of(send);
    const double use = way.part * pace(send, way);
    const bool nics = cluster_.host_link && !way.within_host;
    const auto end = [&](std::uint32_t node) {
      return nics ? "host " + std::to_string(cluster_.host[node]) : "node " + std::to_string(node);
    };
    std::vector<Use> uses = {{"egress of " + end(send.node), use}, {"ingress of " + end(to), use}};
    const costs::LinkCosts& first = way.within_host ? *cluster_.host_link : cluster_.link;
    if (first.bandwidth_both_ways < first.bandwidth) {
      const std::string link = way.within_host ? "host link of " : "link of ";
      const bool same = end(send.node) == end(to);
      uses.push_back({link + end(send.node), same ? 2 * use : use});
      if (!same) uses.push_back({link + end(to), use});
    }
    for (std::size_t level = 0; level < way.levels; ++level) {
      const std::string rack = "rack " + std::to_string(level);
      uses.push_back({rack + " up " + std::to_string(rack_of(send.node, level)), use});
      uses.push_back({rack + " down " + std::to_string(rack_of(to, level)), use});
    }
    return uses;
  }

  std::uint32_t rack_of(std::uint32_t node, std::size_t level) const {
    return cluster_.host[node] / cluster_.racks[level].hosts;
  }

  /// Bandwidth of a rack's uplink.
  double rack_bandwidth(std::size_t level) const {
    const costs::RackCosts& rack = cluster_.racks[level];
    if (level == 0) return rack.hosts * cluster_.link.bandwidth / rack.oversubscription;
    const double below = rack_bandwidth(level - 1) / cluster_.racks[level - 1].hosts;
    return rack.hosts * below / rack.oversubscription;
  }

  Way way(std::uint32_t from, std::uint32_t to) const {
    Way way;
    way.link = cluster_.link;
    if (cluster_.host_link && cluster_.host[from] == cluster_.host[to]) {
      way.within_host = true;
      way.link = *cluster_.host_link;
      return way;
    }
    for (std::size_t level = 0; level < cluster_.racks.size(); ++level) {
      if (rack_of(from, level) == rack_of(to, level)) break;
      way.levels = level + 1;
      way.link.bandwidth = std::min(way.link.bandwidth, rack_bandwidth(level));
      way.link.latency_s += cluster_.racks[level].latency_s;
    }
    way.part = way.link.bandwidth / cluster_.link.bandwidth;
    return way;
  }
  Way way_of(const Task& task) const { return way(task.node, graph_.peer(task)); }

  /// Slowest step of the ring 0, 1 … N-1, 0: costs of the farthest step, bandwidth of the slowest.
  costs::LinkCosts ring() const {
    std::optional<Way> farthest;
    double bandwidth = cluster_.link.bandwidth;
    const auto distance = [](const Way& way) {
      return static_cast<int>(way.levels) - static_cast<int>(way.within_host);
    };
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      const Way step = way(node, (node + 1) % graph_.nodes);
      if (!farthest || distance(step) > distance(*farthest)) farthest = step;
      if (node == 0 || step.link.bandwidth < bandwidth) bandwidth = step.link.bandwidth;
    }
    farthest->link.bandwidth = bandwidth;
    return farthest->link;
  }

  /// Share of its links that a message uses: an all-reduce has the pace of the ring's slowest step.
  double pace(const Task& send, const Way& way) const {
    return send.kind == Kind::kAllReduce ? ring().bandwidth / way.link.bandwidth : 1;
  }

  /// Starts a message of o + bytes/B. On shared cores, it has a thread at each end.
  void start_message(TaskId id, std::vector<Use> uses) {
    const Task& send = graph_[id];
    const Way way = way_of(send);
    const costs::LinkCosts& link = way.link;
    const auto bytes = static_cast<double>(send.amount);
    const bool library = send.kind == Kind::kAllReduce;
    const std::int64_t work = library ? library_work(send)
                                      : casync::from_seconds(link.overhead_s).count() +
                                            casync::from_seconds(bytes / link.bandwidth).count();
    double weight = 1 / way.part / pace(send, way);  // links are shared by bytes per second
    if (cluster_.cores_per_host > 0) {
      // Messages of long slices interrupt long codec tasks.
      const bool interrupts = (send.flags & casync::kOfLongSlice) != 0;
      const double core_s_per_byte =
          interrupts ? link.core_s_per_byte * link.core_factor_interrupting : link.core_s_per_byte;
      const double cores_of_flow = core_s_per_byte * link.bandwidth;
      if (cores_of_flow > 0) weight = 2 / cores_of_flow / pace(send, way);
      const double moved = library ? static_cast<double>(casync::bytes_sent(graph_, send)) : bytes;
      const double core_s = link.core_s_per_message + core_s_per_byte * moved;
      // A library's time includes its CPU work, unless computation uses the cores.
      if ((!library || computing().threads > 0) && core_s > 0 && work > 0) {
        double cores = core_s / casync::to_seconds(Picoseconds(work));
        if (library) {
          cores = std::min(cores, 1.0 * cluster_.cores_per_host / costs::nodes_per_host(cluster_));
          weight = 2 / cores;
        }
        const std::string here = cores_of(send.node), there = cores_of(graph_.peer(send));
        if (here == there) {
          uses.push_back({here, cores});
        } else {
          uses.push_back({here, cores / 2});
          uses.push_back({there, cores / 2});
        }
      }
    }
    start(id, work, weight, std::move(uses));
  }

  /// Lower bound under jitter, which makes no link faster: the time of the bytes at the link's
  /// rate.
  std::int64_t least_on_wire(const Task& task) const {
    const auto bytes = static_cast<double>(task.amount);
    const auto takes = [](double seconds) { return casync::from_seconds(seconds).count(); };
    if (casync::is_local(task)) {
      const double gpus = cluster_.gpus_per_node;
      return takes(bytes * ((gpus - 1) / gpus / cluster_.gpu_link.bandwidth));
    }
    const auto ring_of = [&](double steps, double nodes, const costs::LinkCosts& link) {
      return takes(steps * (bytes / nodes / link.bandwidth));
    };
    const double all = graph_.nodes;
    if (task.kind == Kind::kAllReduce) return ring_of(2 * (all - 1), all, ring());
    if (task.kind == Kind::kSend) return takes(bytes / way_of(task).link.bandwidth);
    if (!casync::is_of_group(task)) return 0;
    const double nodes = graph_.groups[task.group].nodes;
    if (task.kind != Kind::kAllToAll) return ring_of(nodes - 1, nodes, cluster_.link);
    return takes((nodes - 1) / nodes * bytes / cluster_.link.bandwidth);
  }

  std::string cores_of(std::uint32_t node) const {
    return "cores " + std::to_string(cluster_.host[node]);
  }

  void start(TaskId id, std::int64_t work, double weight, std::vector<Use> uses) {
    Status& task = tasks_[id];
    task.state = State::kRunning;
    task.start = task.updated = now_;
    task.remaining = options_.jitter == nullptr
                         ? work
                         : std::max(options_.jitter->apply(work, options_.draws, id),
                                    std::min(work, least_on_wire(graph_[id])));
    task.weight = weight;
    task.uses = std::move(uses);
  }

  cpp_rational amount_of(const std::string& capacity) const {
    if (capacity.starts_with("cores")) return cluster_.cores_per_host;
    if (capacity.starts_with("rack")) {
      const auto level = static_cast<std::size_t>(capacity[5] - '0');
      return cpp_rational(rack_bandwidth(level) / cluster_.link.bandwidth);
    }
    if (capacity.starts_with("host link")) {
      return cpp_rational(2 * cluster_.host_link->bandwidth_both_ways /
                          cluster_.host_link->bandwidth);
    }
    if (capacity.starts_with("link"))
      return cpp_rational(2 * cluster_.link.bandwidth_both_ways / cluster_.link.bandwidth);
    return 1;
  }

  /// Weighted max-min fairness: as the level rises, tasks stop at full speed or a full capacity.
  void solve_speeds() {
    struct Capacity {
      std::vector<TaskId> users;
      cpp_rational left;
      bool untouched = true;  // no task has stopped at it yet
    };
    std::map<std::string, Capacity> capacities;
    std::set<TaskId> open;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (tasks_[id].state != State::kRunning || graph_[id].kind == Kind::kRecv) continue;
      open.insert(id);
      for (const Use& use : tasks_[id].uses) {
        capacities[use.capacity].users.push_back(id);
        capacities[use.capacity].left = amount_of(use.capacity);
      }
    }
    const auto load = [&](TaskId id, const std::string& capacity) -> double {
      for (const Use& use : tasks_[id].uses) {
        if (use.capacity == capacity) return use.amount * tasks_[id].weight;
      }
      return 0;
    };
    /// Level at which the capacity is full.
    const auto full_level = [&](const std::string& name) -> std::optional<cpp_rational> {
      cpp_rational demand = 0;
      for (const TaskId id : capacities[name].users) {
        if (open.contains(id)) demand += cpp_rational(load(id, name));
      }
      if (demand == 0) return std::nullopt;
      return capacities[name].left / demand;
    };
    /// n if the capacity has n equal users, each of which could use all of it alone; else 0.
    const auto equals = [&](const std::string& name) -> std::int64_t {
      const Capacity& capacity = capacities[name];
      if (!capacity.untouched || amount_of(name) != 1) return 0;
      for (const TaskId id : capacity.users) {
        if (tasks_[id].weight != 1 || load(id, name) != 1) return 0;
      }
      return static_cast<std::int64_t>(capacity.users.size());
    };

    while (!open.empty()) {
      cpp_rational level = 0;
      for (const TaskId id : open) {
        const cpp_rational full_speed(1 / tasks_[id].weight);
        if (level == 0 || full_speed < level) level = full_speed;
      }
      for (const auto& [name, capacity] : capacities) {
        const auto full = full_level(name);
        if (full && *full < level) level = *full;
      }
      // Costs are doubles, so levels that differ only in their last bits count as equal.
      const cpp_rational same_level = level + level / (cpp_int(1) << 40);
      std::map<TaskId, Speed> stopped;
      for (const TaskId id : open) {
        const double weight = tasks_[id].weight;
        if (cpp_rational(1 / weight) <= same_level) {
          stopped[id] = {1, 1};
          continue;
        }
        for (const Use& use : tasks_[id].uses) {
          const auto full = full_level(use.capacity);
          if (!full || *full > same_level) continue;
          const std::int64_t n = equals(use.capacity);
          if (n > 0) {
            stopped[id] = {1, n};
          } else if (!stopped.contains(id)) {
            stopped[id] = {in_units(level * cpp_rational(weight)), std::int64_t{1} << 32};
          }
        }
      }
      for (const auto& [id, speed] : stopped) {
        open.erase(id);
        set_speed(tasks_[id], slowed(speed, graph_[id]));
        cpp_rational real = level * cpp_rational(tasks_[id].weight);
        if (real > 1) real = 1;
        for (const Use& use : tasks_[id].uses) {
          capacities[use.capacity].left -= cpp_rational(use.amount) * real;
          capacities[use.capacity].untouched = false;
        }
      }
    }
  }

  /// Speed divided by the factors of all that runs at the same time, at the slower end.
  Speed slowed(const Speed& speed, const Task& task) const {
    std::int64_t slowdown = slowdown_on(task.node, task);
    if (transfers(task)) {
      slowdown = std::max(slowdown, slowdown_on(graph_.peer(task), task));
    }
    if (slowdown == 4096 * 4096) return speed;
    return {speed.numerator * 4096 * 4096, speed.denominator * slowdown};
  }

  /// Product of the factors on a node, each in units of 1/4096.
  std::int64_t slowdown_on(std::uint32_t node, const Task& task) const {
    const auto is_transfer = [](const Task& other) {
      return transfers(other) || casync::is_local(other);
    };
    const auto is_codec = [&](const Task& other) {
      return !computes(other) && !is_transfer(other) && other.kind != Kind::kRecv;
    };
    const auto runs = [&](auto is_sort) {
      return exists(State::kRunning, [&](const Task& other) {
        const bool here = other.node == node || (is_transfer(other) && graph_.peer(other) == node);
        return here && is_sort(other);
      });
    };
    const auto factor = [](bool holds, double value) {
      return holds ? static_cast<std::int64_t>(value * 4096 + 0.5) : 4096;
    };
    const costs::DirectedFactors overlap = costs::directed(cluster_.overlap, graph_.mix);
    if (computes(task)) {
      return factor(runs(is_codec), overlap.compute_beside_codec) *
             factor(runs(is_transfer), overlap.compute_beside_transfer);
    }
    if (is_transfer(task)) {
      return factor(runs(computes), overlap.transfer_beside_compute) *
             factor(runs(is_codec), overlap.transfer_beside_codec);
    }
    return factor(runs(computes), overlap.codec_beside_compute) *
           factor(runs(is_transfer), overlap.codec_beside_transfer);
  }

  /// Speed in units of 2^-32, rounded down; but up if less than 2^-16 of a unit is missing.
  static std::int64_t in_units(const cpp_rational& speed) {
    const cpp_rational units = speed * cpp_rational(cpp_int(1) << 32) + cpp_rational(1, 1 << 16);
    const cpp_int whole = numerator(units) / denominator(units);
    return std::max<std::int64_t>(1, whole.convert_to<std::int64_t>());
  }

  /// Credits the work done at the old speed, rounded down. Rounds the new end up.
  void set_speed(Status& task, const Speed& speed) {
    if (task.speed == speed) return;
    const cpp_int done =
        cpp_int(now_ - task.updated) * task.speed.numerator / task.speed.denominator;
    task.remaining -= std::min(done, cpp_int(task.remaining)).convert_to<std::int64_t>();
    task.updated = now_;
    task.speed = speed;
    const cpp_int left =
        (cpp_int(task.remaining) * speed.denominator + speed.numerator - 1) / speed.numerator;
    task.end = now_ + left.convert_to<std::int64_t>();
  }

  const TaskGraph& graph_;
  const TaskCosts& costs_;
  const costs::Cluster& cluster_;
  const Options& options_;
  std::vector<Status> tasks_;
  std::int64_t now_ = 0;
};

}  // namespace

traces::Timeline simulate_slowly(const TaskGraph& graph, const TaskCosts& costs,
                                 const costs::Cluster& cluster, const Options& options) {
  return Reference(graph, costs, cluster, options).run();
}

}  // namespace hipress::sim
