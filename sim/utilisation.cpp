#include "sim/utilisation.hpp"

#include <algorithm>
#include <map>

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

/// Adds up what the tasks of one iteration took of each resource, in picoseconds until the end.
class Tally {
 public:
  Tally(const Scenario& scenario, const TaskGraph& graph, const Result& result)
      : scenario_(scenario),
        graph_(graph),
        result_(result),
        costs_(scenario.profile, scenario.plan.algorithms),
        both_ways_(scenario.network == Network::kFair
                       ? 2 * scenario.cluster.link.bandwidth_both_ways /
                             scenario.cluster.link.bandwidth
                       : 2) {
    use_.nodes.resize(graph.nodes);
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
    if (graph_.folded) std::fill(use_.nodes.begin(), use_.nodes.end(), use_.nodes.front());
    return std::move(use_);
  }

 private:
  /// From picoseconds to shares, in one rounding each.
  void divide_by_iteration() {
    const auto iteration = static_cast<double>(result_.iteration.count());
    const auto divide = [&](double& time) { time = iteration > 0 ? time / iteration : 0; };
    for (NodeUse& node : use_.nodes) {
      for (double* time : {&node.compute, &node.codec, &node.egress.utilisation, &node.egress.busy,
                           &node.ingress.utilisation, &node.ingress.busy}) {
        divide(*time);
      }
      node.both_ways = (node.egress.utilisation + node.ingress.utilisation) / both_ways_;
    }
    for (HostUse& host : use_.hosts) divide(host.utilisation);
  }

  double length(TaskId id) const {
    return static_cast<double>((result_.timeline.end[id] - result_.timeline.start[id]).count());
  }

  void add(TaskId id) {
    const Task& task = graph_[id];
    NodeUse& node = use_.nodes[graph_.orbit(task.node)];
    switch (task.kind) {
      case Kind::kForward:
      case Kind::kBackward:
        node.compute += length(id);
        return;
      case Kind::kRecv:
      case Kind::kJoin:
        return;
      case Kind::kSend:
      case Kind::kAllReduce:
        return add_message(task);
      default:
        node.codec += length(id);
        add_cores(task.node, static_cast<double>(costs_.codec_time(task).count()) /
                                 scenario_.cluster.compute_speed[task.node]);
    }
  }

  /// o + bytes/B, or all the time that an all-reduce takes alone.
  double link_work(const Task& send, double bytes) const {
    const costs::LinkCosts& link = scenario_.cluster.link;
    if (send.kind == Kind::kSend) return 1e12 * (link.overhead_s + bytes / link.bandwidth);
    return static_cast<double>(costs_.all_reduce_time(send, graph_.nodes, link).count());
  }

  void add_message(const Task& send) {
    const costs::LinkCosts& link = scenario_.cluster.link;
    const std::int64_t whole_bytes = casync::bytes_sent(graph_, send);
    const auto bytes = static_cast<double>(whole_bytes);
    const double work = link_work(send, bytes);
    const std::uint32_t sender = graph_.orbit(send.node);
    const std::uint32_t receiver = graph_.orbit(graph_.peer(send));
    for (LinkUse* use : {&use_.nodes[sender].egress, &use_.nodes[receiver].ingress}) {
      use->bytes += whole_bytes;
      ++use->messages;
      use->utilisation += work;
    }
    if (send.kind == Kind::kAllReduce) return;  // what it does on shared cores is not known
    const double core_work = 1e12 * (link.core_s_per_message + link.core_s_per_byte * bytes);
    add_cores(send.node, core_work / 2);
    add_cores(receiver, core_work / 2);
  }

  void add_cores(std::uint32_t node, double picoseconds) {
    if (!core_work_.empty()) core_work_[scenario_.cluster.host[node]] += picoseconds;
  }

  /// The union of the messages' times, from the sends in the order of their starts.
  void add_busy_links() {
    std::vector<TaskId> sends;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      const Kind kind = graph_[id].kind;
      if (kind == Kind::kSend || kind == Kind::kAllReduce) sends.push_back(id);
    }
    const traces::Timeline& times = result_.timeline;
    std::stable_sort(sends.begin(), sends.end(),
                     [&](TaskId a, TaskId b) { return times.start[a] < times.start[b]; });
    struct Covered {
      Picoseconds egress{}, ingress{};
    };
    std::vector<Covered> until(graph_.nodes);
    const auto cover = [&](TaskId id, Picoseconds& reached, LinkUse& use) {
      const Picoseconds from = std::max(reached, times.start[id]);
      if (times.end[id] <= from) return;
      use.busy += static_cast<double>((times.end[id] - from).count());
      reached = times.end[id];
    };
    for (const TaskId id : sends) {
      const std::uint32_t sender = graph_.orbit(graph_[id].node);
      const std::uint32_t receiver = graph_.orbit(graph_.peer(graph_[id]));
      cover(id, until[sender].egress, use_.nodes[sender].egress);
      cover(id, until[receiver].ingress, use_.nodes[receiver].ingress);
    }
  }

  const Scenario& scenario_;
  const TaskGraph& graph_;
  const Result& result_;
  const TaskCosts costs_;
  const double both_ways_;  // what a link carries both ways together, in links one way
  std::map<std::uint32_t, double> core_work_;  // per host, core-picoseconds; empty: not shared
  Utilisation use_;
};

}  // namespace

Utilisation utilisation(const Scenario& scenario, const TaskGraph& graph, const Result& result) {
  traces::require_same_graph(graph, result.timeline);
  return Tally(scenario, graph, result).take();
}

}  // namespace hipress::sim
