#include "sim/slowdown.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "sim/jitter.hpp"
#include "sim/works.hpp"

namespace hipress::sim {
namespace {

using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// Kinds of concurrent work that slow computation.
enum Rival : std::uint8_t { kCodec, kTransfer, kComputation, kRivals };
using Shares = std::array<double, kRivals>;

/// Beginning (sign 1) or end (sign -1) of a task's demand on its host.
struct Change {
  Picoseconds at{};
  TaskId task = 0;
  std::uint32_t node = 0;  ///< its node; for a transfer, one of its ends
  Rival rival = kCodec;
  double cores = 0;
  double memory = 0;  ///< share of the host's bandwidth
  int sign = 1;
};

/// Demand on a host or a node by each kind of work: cores, memory, and number of running tasks.
struct Load {
  Shares cores{}, memory{}, tasks{};

  void add(const Change& change) {
    cores[change.rival] += change.sign * change.cores;
    memory[change.rival] += change.sign * change.memory;
    tasks[change.rival] += change.sign;
  }
};

double sum(const Shares& shares) {
  return shares[kCodec] + shares[kTransfer] + shares[kComputation];
}

/// A computing task while it runs.
struct Running {
  TaskId task = 0;
  std::uint32_t node = 0;
  double cores = 0, memory = 0;
  Shares lost{};  ///< weights by which the time that it lost is divided among the rivals
};

class Attribution {
 public:
  Attribution(const Scenario& scenario, const TaskGraph& graph, const Result& result)
      : scenario_(scenario),
        cluster_(scenario.cluster),
        graph_(graph),
        times_(result.timeline),
        costs_(scenario.profile, scenario.plan.algorithms),
        works_(costs_, scenario.cluster, graph.divisor),
        overlap_(costs::directed(scenario.cluster.overlap, graph.mix)) {
    slowdowns_.of_nodes.resize(graph.nodes);
  }

  Slowdowns take() {
    if (!find_lost()) return std::move(slowdowns_);
    const std::uint32_t hosts = *std::ranges::max_element(cluster_.host) + 1;
    std::vector<std::vector<Change>> of_hosts(hosts);
    for (TaskId id = 0; id < graph_.tasks(); ++id) add_changes(id, of_hosts);
    for (std::vector<Change>& changes : of_hosts) attribute(changes);
    if (graph_.folded) std::ranges::fill(slowdowns_.of_nodes, slowdowns_.of_nodes.front());
    return std::move(slowdowns_);
  }

 private:
  std::int64_t length(TaskId id) const { return (times_.end[id] - times_.start[id]).count(); }

  /// Finds the time that each computing task lost. True if any task lost time.
  bool find_lost() {
    bool any = false;
    std::vector<Picoseconds> lost(graph_.tasks());
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      const Task& task = graph_[id];
      if (!casync::is_computation(task)) continue;
      std::int64_t work =
          works_.at_speed(task, works_.computation(task), cluster_.compute_speed[task.node]);
      if (scenario_.jitter) work = scenario_.jitter->apply(work, scenario_.draws, id);
      lost[id] = Picoseconds(std::max<std::int64_t>(0, length(id) - work));
      any = any || lost[id].count() > 0;
    }
    if (any) slowdowns_.of_tasks = std::move(lost);
    return any;
  }

  void add_changes(TaskId id, std::vector<std::vector<Change>>& of_hosts) const {
    if (length(id) == 0) return;
    const Task& task = graph_[id];
    const auto add = [&](std::uint32_t node, Change change) {
      change.task = id;
      change.node = graph_.representative(node);
      std::vector<Change>& changes = of_hosts[cluster_.host[change.node]];
      for (const int sign : {1, -1}) {
        change.sign = sign;
        change.at = sign > 0 ? times_.start[id] : times_.end[id];
        changes.push_back(change);
      }
    };
    switch (casync::resource_of(task.kind)) {
      case casync::Resource::kCompute:
        return add(task.node, {.rival = kComputation,
                               .cores = graph_.computing.cores(task),
                               .memory = memory_share(graph_.computing.memory_traffic)});
      case casync::Resource::kCodec:
        return add(task.node,
                   {.rival = kCodec,
                    .cores = 1,
                    .memory = memory_share(works_.memory_bytes(task) /
                                           casync::to_seconds(Picoseconds(length(id))))});
      case casync::Resource::kPorts: {
        const double cores = cores_of(id) / 2;
        add(task.node, {.rival = kTransfer, .cores = cores});
        return add(graph_.peer(task), {.rival = kTransfer, .cores = cores});
      }
      case casync::Resource::kLocal:
      case casync::Resource::kCollective:
        return add(task.node, {.rival = kTransfer});
      case casync::Resource::kNone:
        return;
    }
  }

  double memory_share(double bytes_per_s) const {
    const double all = cluster_.host_memory_bandwidth;
    const bool shared = cluster_.cores_per_host > 0 && graph_.computing.memory_traffic > 0;
    return shared && all > 0 && std::isfinite(bytes_per_s) ? std::min(1.0, bytes_per_s / all) : 0;
  }

  /// Cores that a transfer kept busy, both ends together.
  double cores_of(TaskId id) const {
    const Task& send = graph_[id];
    const bool by_path = send.kind == casync::Kind::kSend;
    const costs::LinkCosts link =
        by_path ? costs::path_costs(cluster_, costs::path(cluster_, send.node, graph_.peer(send)))
                : works_.ring();
    return link.core_s(static_cast<double>(casync::bytes_sent(graph_, send)),
                       casync::interrupts(send)) /
           casync::to_seconds(Picoseconds(length(id)));
  }

  /// Attributes the losses on one host, in order of time.
  void attribute(std::vector<Change>& changes) {
    std::ranges::stable_sort(changes, {}, &Change::at);
    Load host;
    std::vector<Load> nodes(graph_.nodes);
    std::vector<Running> running;
    Picoseconds reached{};
    for (const Change& change : changes) {
      const auto passed = static_cast<double>((change.at - reached).count());
      if (passed > 0) {
        for (Running& one : running) lose(passed, host, nodes[one.node], one);
      }
      reached = change.at;
      host.add(change);
      nodes[change.node].add(change);
      if (change.rival != kComputation) continue;
      if (change.sign > 0) {
        running.push_back({change.task, change.node, change.cores, change.memory});
      } else {
        end(change.task, running);
      }
    }
  }

  void end(TaskId task, std::vector<Running>& running) {
    const auto found = std::ranges::find(running, task, &Running::task);
    Slowdown& slowdown = slowdowns_.of_nodes[found->node];
    const auto lost = static_cast<double>(slowdowns_.of_tasks[task].count());
    const double all = sum(found->lost);
    const auto part = [&](Rival rival) {
      const double share = all > 0 ? found->lost[rival] / all : rival == kComputation ? 1 : 0;
      return Picoseconds(static_cast<std::int64_t>(lost * share + 0.5));
    };
    slowdown.by_codecs += part(kCodec);
    slowdown.by_transfers += part(kTransfer);
    slowdown.by_computation += part(kComputation);
    running.erase(found);
  }

  void lose(double passed, const Load& host, const Load& node, Running& one) const {
    lose_to(host.cores, cluster_.cores_per_host, one.cores, passed, one);
    lose_to(host.memory, 1, one.memory, passed, one);
    if (node.tasks[kCodec] > 0) {
      one.lost[kCodec] += passed * std::log(overlap_.compute_beside_codec);
    }
    if (node.tasks[kTransfer] > 0) {
      one.lost[kTransfer] += passed * std::log(overlap_.compute_beside_transfer);
    }
  }

  /// Attributes a shortage of `capacity` to the rivals, each by its demand.
  static void lose_to(const Shares& wanted, double capacity, double own, double passed,
                      Running& one) {
    const double all = sum(wanted);
    constexpr double kRounding = 1e-9;
    if (capacity <= 0 || own <= 0 || all <= capacity + kRounding) return;
    Shares others = wanted;
    others[kComputation] -= own;
    const double of_others = sum(others);
    if (of_others <= kRounding) return;
    const double lacks = passed * (1 - capacity / all);
    for (std::size_t rival = 0; rival < others.size(); ++rival) {
      one.lost[rival] += lacks * std::max(0.0, others[rival]) / of_others;
    }
  }

  const Scenario& scenario_;
  const costs::Cluster& cluster_;
  const TaskGraph& graph_;
  const traces::Timeline& times_;
  const TaskCosts costs_;
  const Works works_;
  const costs::DirectedFactors overlap_;
  Slowdowns slowdowns_;
};

}  // namespace

std::uint32_t Slowdowns::slowest() const {
  const auto most = std::ranges::max_element(of_nodes, {}, &Slowdown::total);
  return most == of_nodes.end() ? 0 : static_cast<std::uint32_t>(most - of_nodes.begin());
}

Slowdowns slowdowns(const Scenario& scenario, const TaskGraph& graph, const Result& result) {
  traces::require_same_graph(graph, result.timeline);
  return Attribution(scenario, graph, result).take();
}

}  // namespace hipress::sim
