#include "casync/task_graph.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <stdexcept>

namespace hipress::casync {
namespace {

[[noreturn]] void reject(const std::string& message) {
  throw std::invalid_argument("task graph: " + message);
}

/// Names the tasks of one cycle. `waiting[v]`: number of predecessors of v that can never end.
std::string describe_cycle(const TaskGraph& graph, const std::vector<std::uint32_t>& waiting) {
  // Every stuck task has a stuck predecessor, so a walk backwards from any of them must repeat a
  // task.
  std::vector<TaskId> predecessor(graph.tasks(), graph.tasks());
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (waiting[id] == 0) continue;
    for (const TaskId next : successors(graph, id)) {
      if (waiting[next] > 0) predecessor[next] = id;
    }
  }
  TaskId at = 0;
  while (waiting[at] == 0 || predecessor[at] == graph.tasks()) ++at;
  for (TaskId step = 0; step < graph.tasks(); ++step) at = predecessor[at];

  std::vector<TaskId> cycle{at};
  for (TaskId id = predecessor[at]; id != at; id = predecessor[id]) cycle.push_back(id);
  std::reverse(cycle.begin(), cycle.end());
  std::string names;
  constexpr std::size_t kMaxNamed = 10;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMaxNamed); ++i) {
    names += (i > 0 ? " -> " : "") + describe(graph, cycle[i]);
  }
  return names + (cycle.size() > kMaxNamed ? " -> …" : "");
}

void check_acyclic(const TaskGraph& graph) {
  std::vector<std::uint32_t> waiting = graph.predecessors;
  std::vector<TaskId> ready;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (waiting[id] == 0) ready.push_back(id);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const TaskId id = ready.back();
    ready.pop_back();
    ++done;
    for (const TaskId next : successors(graph, id)) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  if (done < graph.tasks()) reject("cycle: " + describe_cycle(graph, waiting));
}

void check_send(const TaskGraph& graph, TaskId id) {
  const Task& send = graph[id];
  int receives = 0;
  for (const TaskId next : successors(graph, id)) {
    const Task& recv = graph[next];
    if (recv.kind != Kind::kRecv) continue;
    ++receives;
    if (recv.node != graph.peer(send) || graph.peer(recv) != send.node) {
      reject(describe(graph, id) + " goes to node " + std::to_string(graph.peer(send)) + ", but " +
             describe(graph, next) + " follows it");
    }
    if (recv.amount != send.amount) {
      reject(describe(graph, id) + " sends " + std::to_string(send.amount) +
             " bytes, but its Recv takes " + std::to_string(recv.amount));
    }
  }
  if (receives != 1) {
    reject(describe(graph, id) + " has " + std::to_string(receives) +
           " receives; it needs exactly one");
  }
}

/// Requires that all nodes whose tasks the graph holds take part in every AllReduce equally often.
void check_collectives(const TaskGraph& graph) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<TaskId>> last_of;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<int>> counts;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (task.kind != Kind::kAllReduce) continue;
    const auto key = std::pair(task.gradient, task.partition);
    std::vector<TaskId>& last = last_of[key];
    std::vector<int>& count = counts[key];
    last.resize(graph.representatives(), id);
    count.resize(graph.representatives(), 0);
    last[graph.representative(task.node)] = id;
    ++count[graph.representative(task.node)];
    const Task& other = graph[last.front()];
    if (task.amount != other.amount) {
      reject(describe(graph, id) + " is of " + std::to_string(task.amount) +
             " bytes, but that on node " + std::to_string(other.node) + " of " +
             std::to_string(other.amount));
    }
    if (task.algorithm != other.algorithm) {
      reject(describe(graph, id) + " is of another algorithm than that on node " +
             std::to_string(other.node) + "; a library sums numbers of one type");
    }
  }
  for (const auto& [key, count] : counts) {
    for (std::uint32_t node = 0; node < graph.representatives(); ++node) {
      if (count[node] == *std::max_element(count.begin(), count.end())) continue;
      reject(describe(graph, last_of[key].front()) + " is a collective, but node " +
             std::to_string(node) + " does not take part as often as others");
    }
  }
}

/// Requires that every LocalReduce is followed by a LocalBroadcast of the same gradient and bytes
/// on the same node: until then the sum is spread over the node's GPUs. A second LocalBroadcast may
/// follow; it gathers the shares again.
void check_local_tasks(const TaskGraph& graph) {
  struct Reduced {
    TaskId id = 0;
    bool gathered = false;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Reduced> reduced;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (!is_local(task)) continue;
    const auto key = std::pair(task.node, task.gradient);
    const auto before = reduced.find(key);
    if (task.kind == Kind::kLocalReduce) {
      if (before != reduced.end() && !before->second.gathered) {
        reject(describe(graph, id) + " follows another one, but no LocalBroadcast of it");
      }
      reduced.insert_or_assign(key, Reduced{id});
      continue;
    }
    if (before == reduced.end()) {
      reject(describe(graph, id) + " has no LocalReduce before it; it needs one");
    }
    auto& [sum, gathered] = before->second;
    if (task.amount != graph[sum].amount) {
      reject(describe(graph, id) + " gathers " + std::to_string(task.amount) +
             " bytes, but its LocalReduce sums " + std::to_string(graph[sum].amount));
    }
    gathered = true;
  }
  for (const auto& [key, last] : reduced) {
    if (!last.gathered) reject(describe(graph, last.id) + " has no LocalBroadcast after it");
  }
}

}  // namespace

std::string factor_name(const std::string& unit, std::uint32_t stage) {
  return unit + "." + std::to_string(stage);
}

const char* to_string(Role role) {
  constexpr const char* kNames[] = {"worker", "hop", "server"};
  return kNames[static_cast<int>(role)];
}

void check(const TaskGraph& graph) {
  if (graph.nodes == 0) reject("it has no nodes; at least one is needed");
  if (graph.predecessors.size() != graph.tasks()) {
    reject("it counts predecessors of " + std::to_string(graph.predecessors.size()) +
           " tasks, but has " + std::to_string(graph.tasks()) + "; make it with GraphBuilder");
  }
  std::vector<std::uint32_t> sends(graph.tasks(), 0);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (task.node >= graph.nodes) {
      reject(describe(graph, id) + " is on an unknown node: the graph has nodes 0 to " +
             std::to_string(graph.nodes - 1));
    }
    if (task.amount < 0) {
      reject(describe(graph, id) + " has a negative amount, " + std::to_string(task.amount));
    }
    if (task.kind != Kind::kSend) continue;
    check_send(graph, id);
    for (const TaskId next : successors(graph, id)) ++sends[next];
  }
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kRecv && sends[id] != 1) {
      reject(describe(graph, id) + " has " + std::to_string(sends[id]) +
             " sends; it needs exactly one");
    }
  }
  check_collectives(graph);
  check_acyclic(graph);
  check_local_tasks(graph);
}

std::span<const Factor> TaskGraph::factors_of_unit(std::uint32_t unit) const {
  const auto found = staged_units.find(unit);
  if (found == staged_units.end()) return {};
  std::size_t count = 0;
  while (found->second + count < factors.size() && factors[found->second + count].unit == unit) {
    ++count;
  }
  return {factors.data() + found->second, count};
}

std::string describe(const TaskGraph& graph, TaskId id, const std::string& gradient_name) {
  const Task& task = graph[id];
  std::string text = to_string(task.kind);
  if (task.kind != Kind::kForward && task.kind != Kind::kSteps) {
    const Factor* const factor = graph.factor_of(task);
    const std::uint32_t unit = graph.unit_of(task);
    const bool is_group = unit >= graph.first_group;
    std::string number = is_group ? "bulk" : "g";
    number.append(std::to_string(is_group ? unit - graph.first_group : unit));
    if (factor != nullptr) number = factor_name(number, factor->stage);
    text.append(" ").append(gradient_name.empty() ? number : gradient_name);
    if (codes_factors(task) && task.kind == Kind::kEncode) {
      text.append(".").append(std::to_string(task.stage));
    }
  }
  if (!is_computation(task) && !is_local(task)) {
    text.append("[").append(std::to_string(task.partition)).append("]");
  }
  text += " on node " + std::to_string(task.node);
  if (task.kind == Kind::kSend) text += " to node " + std::to_string(graph.peer(task));
  if (task.kind == Kind::kRecv) text += " from node " + std::to_string(graph.peer(task));
  return text;
}

}  // namespace hipress::casync
