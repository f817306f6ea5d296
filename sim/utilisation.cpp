#include "sim/utilisation.hpp"

#include <algorithm>
#include <map>

#include "costs/host_pairs.hpp"
#include "sim/works.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// Sums up the tasks' use of each resource in picoseconds, then divides by the iteration time.
class Tally {
 public:
  Tally(const Scenario& scenario, const TaskGraph& graph, const Result& result)
      : scenario_(scenario),
        graph_(graph),
        result_(result),
        costs_(scenario.profile, scenario.plan.algorithms),
        works_(costs_, scenario.cluster, graph.divisor),
        ring_(costs::ring_costs(scenario.cluster)),
        slow_links_(scenario.cluster.slow_links) {
    use_.nodes.resize(graph.nodes);
    add_shared_links();
    if (scenario.cluster.cores_per_host == 0) return;
    for (const std::uint32_t host : scenario.cluster.host) core_work_[host] = 0;
  }

  Utilisation take() {
    for (TaskId id = 0; id < graph_.tasks(); ++id) add(id);
    add_busy_links();
    for (const auto& [host, work] : core_work_) {
      use_.hosts.push_back({host, work / scenario_.cluster.cores_per_host});
    }
    divide_by_iteration();
    if (graph_.folded) {
      std::fill(use_.nodes.begin(), use_.nodes.end(), use_.nodes.front());
      std::fill(use_.host_links.begin(), use_.host_links.end(), use_.host_links.front());
    }
    return std::move(use_);
  }

 private:
  void add_shared_links() {
    const costs::Cluster& cluster = scenario_.cluster;
    if (!costs::is_hierarchical(cluster)) return;
    const std::uint32_t hosts = *std::max_element(cluster.host.begin(), cluster.host.end()) + 1;
    if (cluster.host_link) use_.host_links.resize(hosts);
    racks_below_ = costs::racks_below(cluster);
    use_.rack_links.resize(racks_below_.back());
  }

  /// Joint capacity of both directions of a link, divided by that of one direction.
  double both_ways(const costs::LinkCosts& link) const {
    return scenario_.network == Network::kFair ? 2 * link.bandwidth_both_ways / link.bandwidth : 2;
  }

  /// Converts picoseconds to shares of the iteration.
  void divide_by_iteration() {
    const auto iteration = static_cast<double>(result_.iteration.count());
    const auto divide = [&](double& time) { time = iteration > 0 ? time / iteration : 0; };
    const auto divide_link = [&](LinkUse& out, LinkUse& in, double carried) {
      for (double* time : {&out.utilisation, &out.busy, &in.utilisation, &in.busy}) divide(*time);
      return (out.utilisation + in.utilisation) / carried;
    };
    const costs::Cluster& cluster = scenario_.cluster;
    const double of_node = both_ways(cluster.host_link ? *cluster.host_link : cluster.link);
    for (NodeUse& node : use_.nodes) {
      for (double* time : {&node.compute, &node.codec, &node.local}) divide(*time);
      node.both_ways = divide_link(node.egress, node.ingress, of_node);
    }
    for (SharedLinkUse& link : use_.host_links) {
      link.both_ways = divide_link(link.out, link.in, both_ways(cluster.link));
    }
    for (SharedLinkUse& link : use_.rack_links) link.both_ways = divide_link(link.out, link.in, 2);
    for (HostUse& host : use_.hosts) divide(host.utilisation);
  }

  double length(TaskId id) const {
    return static_cast<double>((result_.timeline.end[id] - result_.timeline.start[id]).count());
  }

  void add(TaskId id) {
    const Task& task = graph_[id];
    NodeUse& node = use_.nodes[graph_.representative(task.node)];
    switch (casync::resource_of(task.kind)) {
      case casync::Resource::kCompute:
        node.compute += length(id);
        add_cores(task.node,
                  graph_.computing.cores(task) * (static_cast<double>(task.amount) /
                                                  scenario_.cluster.compute_speed[task.node]));
        return;
      case casync::Resource::kNone:
        return;
      case casync::Resource::kPorts:
        return add_message(task);
      case casync::Resource::kLocal:
        node.local += length(id);
        return;
      case casync::Resource::kCollective:
        return add_collective(task, node);
      case casync::Resource::kCodec: {
        node.codec += length(id);
        const costs::Cluster& cluster = scenario_.cluster;
        const std::int64_t nominal = works_.codec(task, graph_.factors_of(task));
        add_cores(task.node, static_cast<double>(nominal) / cluster.compute_speed[task.node]);
      }
    }
  }

  /// Adds a collective's use. Between hosts, it keeps both directions of the node's link busy;
  /// within a host, the link between the host's GPUs.
  void add_collective(const Task& task, NodeUse& node) {
    const costs::Cluster& cluster = scenario_.cluster;
    const auto [nodes, stride] = graph_.groups[task.group];
    const costs::GroupNetwork network =
        costs::group_network(cluster, nodes, stride, Works::pattern_of(task));
    auto work = static_cast<double>(works_.of_group(task, nodes, network.link).on_link);
    if (cluster.of_machine) {
      const auto [within, between] = works_.port_shares(task, nodes, network.link);
      node.local += work * within;
      work *= between;
      if (between == 0) return;
    } else if (network.within_host) {
      node.local += work;
      return;
    }
    const auto bytes = static_cast<double>(casync::bytes_sent(graph_, task));
    if (use_.host_links.empty()) {
      for (LinkUse* use : {&node.egress, &node.ingress}) add_collective(work, bytes, *use);
    } else {
      // Nodes of a host use its link together. A folded graph has only one of them, which counts
      // for all.
      const double share = graph_.folded ? 1 : 1.0 / costs::nodes_per_host(cluster);
      SharedLinkUse& link = use_.host_links[cluster.host[task.node]];
      const double busy = network.flows * network.link.bandwidth / cluster.link.bandwidth;
      for (LinkUse* use : {&link.out, &link.in}) {
        add_collective(share * busy * work, share * network.flows * bytes, *use);
      }
    }
  }

  static void add_collective(double work, double bytes, LinkUse& use) {
    use.utilisation += work;
    use.busy += work;
    use.bytes += static_cast<std::int64_t>(bytes);
    ++use.messages;
  }

  /// One direction of a link on a message's path.
  struct Hop {
    LinkUse* use = nullptr;
    double bandwidth = 0;
    std::uint64_t index = 0;  // unique per direction of a link
  };

  /// Link directions on a message's path, in no particular order.
  std::vector<Hop> hops(const Task& send) {
    const costs::Cluster& cluster = scenario_.cluster;
    const std::uint32_t sender = graph_.representative(send.node);
    const std::uint32_t receiver = graph_.representative(graph_.peer(send));
    const costs::Path path = costs::path(cluster, send.node, graph_.peer(send));
    const std::uint64_t hosts = 2 * use_.nodes.size();
    const std::uint64_t racks = hosts + 2 * use_.host_links.size();
    const std::uint32_t from = cluster.host[sender], to = cluster.host[receiver];
    const double bandwidth = cluster.link.bandwidth;
    std::vector<Hop> way;
    if (use_.host_links.empty() || path == costs::Path::kWithinHost) {
      const double own = use_.host_links.empty() ? bandwidth : cluster.host_link->bandwidth;
      way = {{&use_.nodes[sender].egress, own, 2ull * sender},
             {&use_.nodes[receiver].ingress, own, 2ull * receiver + 1}};
    } else {
      way = {{&use_.host_links[from].out, bandwidth, hosts + 2ull * from},
             {&use_.host_links[to].in, bandwidth, hosts + 2ull * to + 1}};
    }
    for (std::size_t level = 0; level < costs::levels_of(path); ++level) {
      const std::uint32_t size = cluster.racks[level].hosts, first = racks_below_[level];
      const std::uint32_t up = first + from / size, down = first + to / size;
      const double rack = costs::rack_bandwidth(cluster, level);
      way.push_back({&use_.rack_links[up].out, rack, racks + 2ull * up});
      way.push_back({&use_.rack_links[down].in, rack, racks + 2ull * down + 1});
    }
    return way;
  }

  /// Costs of the link that determines the time of a message or an all-reduce.
  costs::LinkCosts link_of(const Task& send) const {
    const costs::Cluster& cluster = scenario_.cluster;
    if (send.kind == Kind::kAllReduce) return ring_;
    const std::uint32_t peer = graph_.peer(send);
    const std::vector<std::uint32_t>& host = cluster.host;
    if (const auto slow = slow_links_.find(host[send.node], host[peer])) {
      return costs::slow_link_costs(cluster, *slow);
    }
    return costs::path_costs(cluster, costs::path(cluster, send.node, peer));
  }

  /// Work on a link in picoseconds: o + bytes/B, or the time of an all-reduce alone.
  double link_work(const Task& send, const costs::LinkCosts& link, double bytes) const {
    if (send.kind == Kind::kSend) return 1e12 * (link.overhead_s + bytes / link.bandwidth);
    return static_cast<double>(works_.all_reduce(send));
  }

  void add_message(const Task& send) {
    const costs::LinkCosts link = link_of(send);
    const std::int64_t whole_bytes = casync::bytes_sent(graph_, send);
    const auto bytes = static_cast<double>(whole_bytes);
    const double work = link_work(send, link, bytes);
    for (const Hop& hop : hops(send)) {
      hop.use->bytes += whole_bytes;
      ++hop.use->messages;
      hop.use->utilisation +=
          hop.bandwidth == link.bandwidth ? work : work * (link.bandwidth / hop.bandwidth);
    }
    const std::uint32_t receiver = graph_.representative(graph_.peer(send));
    if (send.kind == Kind::kAllReduce) return;  // its use of shared cores is unknown
    const double core_work = 1e12 * link.core_s(bytes, casync::interrupts(send));
    add_cores(send.node, core_work / 2);
    add_cores(receiver, core_work / 2);
  }

  void add_cores(std::uint32_t node, double picoseconds) {
    if (!core_work_.empty()) core_work_[scenario_.cluster.host[node]] += picoseconds;
  }

  /// Sets LinkUse::busy from the union of the messages' times.
  void add_busy_links() {
    std::vector<TaskId> sends;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      const Kind kind = graph_[id].kind;
      if (kind == Kind::kSend || kind == Kind::kAllReduce) sends.push_back(id);
    }
    const traces::Timeline& times = result_.timeline;
    std::stable_sort(sends.begin(), sends.end(),
                     [&](TaskId a, TaskId b) { return times.start[a] < times.start[b]; });
    std::vector<Picoseconds> until(
        2 * (use_.nodes.size() + use_.host_links.size() + use_.rack_links.size()), Picoseconds{});
    const auto cover = [&](TaskId id, Picoseconds& reached, LinkUse& use) {
      const Picoseconds from = std::max(reached, times.start[id]);
      if (times.end[id] <= from) return;
      use.busy += static_cast<double>((times.end[id] - from).count());
      reached = times.end[id];
    };
    for (const TaskId id : sends) {
      for (const Hop& hop : hops(graph_[id])) cover(id, until[hop.index], *hop.use);
    }
  }

  const Scenario& scenario_;
  const TaskGraph& graph_;
  const Result& result_;
  const TaskCosts costs_;
  const Works works_;
  const costs::LinkCosts ring_;  // link of all-reduces
  const costs::HostPairs slow_links_;
  std::vector<std::uint32_t> racks_below_;
  std::map<std::uint32_t, double> core_work_;  // per host, core-picoseconds; empty: not shared
  Utilisation use_;
};

}  // namespace

Utilisation utilisation(const Scenario& scenario, const TaskGraph& graph, const Result& result) {
  traces::require_same_graph(graph, result.timeline);
  return Tally(scenario, graph, result).take();
}

}  // namespace hipress::sim
