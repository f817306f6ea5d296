// Writer of the trace event format of chrome://tracing and Perfetto: a process per timeline and
// node, a thread per lane, a complete event ("X") per task, and a flow ("s" to "f") per message.
//
// A lane is a row of tasks that do not overlap, because viewers drop overlapping events. The
// compute stream, the codec stream and a port that sends one message at a time fill one lane each.
// A port that shares its bandwidth gets one lane per concurrent message.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "traces/timeline.hpp"

namespace hipress::traces {
namespace {

/// True if the task belongs to one gradient. Tasks for a whole pass or several steps do not.
bool is_of_gradient(const casync::Task& task) {
  return task.kind != casync::Kind::kForward && task.kind != casync::Kind::kSteps;
}

using casync::Kind;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;
using OrderedJson = nlohmann::ordered_json;

/// Names of lanes, in the viewers' order.
constexpr std::array<std::string_view, 7> kLaneNames{"compute", "codec",  "egress", "ingress",
                                                     "local",   "gather", "reduce"};
/// Number of thread IDs reserved per resource, so that viewers show its lanes next to each other.
constexpr int kLanesPerResource = 1 << 20;

/// Index into kLaneNames. Messages that carry shards are in the lanes `gather` and `reduce`.
std::size_t lane_of(const TaskGraph& graph, const Task& task) {
  const bool of_shard = task.kind == Kind::kSend && graph.first_parameters != UINT32_MAX;
  const std::string_view lane = !of_shard ? casync::row_of(task.kind).lane
                                : task.gradient < graph.first_parameters ? "reduce"
                                                                         : "gather";
  const auto found = std::ranges::find(kLaneNames, lane);
  return static_cast<std::size_t>(found - kLaneNames.begin());
}

double microseconds(Picoseconds time) { return static_cast<double>(time.count()) / 1e6; }

/// Writes the events of a trace, one per line.
class EventWriter {
 public:
  explicit EventWriter(std::ostream& out) : out_(out) {
    out_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
  }
  void write(const OrderedJson& event) {
    out_ << (first_ ? "\n" : ",\n") << event.dump();
    first_ = false;
  }
  void finish(const TraceSubject& subject) {
    out_ << "\n]";
    if (!subject.model.empty() || !subject.plan.empty()) {
      out_ << R"(,"otherData":)"
           << OrderedJson{{"model", subject.model}, {"plan", subject.plan}}.dump();
    }
    out_ << "}\n";
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

/// Lanes of one resource, which take tasks in order of their start.
class Lanes {
 public:
  /// Takes the first lane that is free at `start` until `end`. Returns its index.
  int place(Picoseconds start, Picoseconds end) {
    auto lane = std::find_if(free_at_.begin(), free_at_.end(),
                             [start](Picoseconds free_at) { return free_at <= start; });
    if (lane == free_at_.end()) lane = free_at_.insert(lane, Picoseconds{});
    *lane = end;
    return static_cast<int>(lane - free_at_.begin());
  }
  int count() const { return static_cast<int>(free_at_.size()); }

 private:
  std::vector<Picoseconds> free_at_;
};

/// Writes one of the `count` timelines of the trace, the one at `index`.
class TimelineWriter {
 public:
  TimelineWriter(EventWriter& events, const TaskGraph& graph,
                 const std::vector<std::string>& gradient_names, const Timeline& timeline,
                 std::size_t index, std::size_t count)
      : events_(events),
        graph_(graph),
        gradient_names_(gradient_names),
        timeline_(timeline),
        index_(index),
        count_(count),
        lanes_(graph.nodes) {}

  void write() {
    const std::vector<TaskId> order = shown_by_start();
    // Lanes are named last because their number is known only then.
    std::vector<int> thread(graph_.tasks());
    for (const TaskId id : order) thread[id] = place(id);
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) write_names(node);
    for (const TaskId id : order) write_task(id, thread[id]);
  }

 private:
  static bool is_message_end(Kind kind) { return kind == Kind::kSend || kind == Kind::kRecv; }

  std::vector<TaskId> shown_by_start() const {
    std::vector<TaskId> order;
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (timeline_.end[id] > timeline_.start[id] || is_message_end(graph_[id].kind)) {
        order.push_back(id);
      }
    }
    std::stable_sort(order.begin(), order.end(), [this](TaskId a, TaskId b) {
      return timeline_.start[a] < timeline_.start[b];
    });
    return order;
  }

  int place(TaskId id) {
    const std::size_t where = lane_of(graph_, graph_[id]);
    const int lane = lanes_[graph_[id].node][where].place(timeline_.start[id], timeline_.end[id]);
    return static_cast<int>(where) * kLanesPerResource + lane;
  }

  /// Process ID. It counts by node first, so that the timelines of a node are adjacent.
  std::size_t process(std::uint32_t node) const { return 1 + node * count_ + index_; }

  void write_names(std::uint32_t node) {
    const std::size_t pid = process(node);
    const std::string name = fmt::format("{} node {}", timeline_.title, node);
    events_.write(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name}}}});
    events_.write({{"ph", "M"},
                   {"name", "process_sort_index"},
                   {"pid", pid},
                   {"args", {{"sort_index", pid}}}});
    for (std::size_t where = 0; where < kLaneNames.size(); ++where) {
      for (int lane = 0; lane < lanes_[node][where].count(); ++lane) {
        const int tid = static_cast<int>(where) * kLanesPerResource + lane;
        write_thread_name(pid, tid, kLaneNames[where], lane);
      }
    }
  }

  void write_thread_name(std::size_t pid, int tid, std::string_view resource_name, int lane) {
    const std::string name =
        lane == 0 ? std::string(resource_name) : fmt::format("{} {}", resource_name, lane + 1);
    events_.write({{"ph", "M"},
                   {"name", "thread_name"},
                   {"pid", pid},
                   {"tid", tid},
                   {"args", {{"name", name}}}});
    events_.write({{"ph", "M"},
                   {"name", "thread_sort_index"},
                   {"pid", pid},
                   {"tid", tid},
                   {"args", {{"sort_index", tid}}}});
  }

  std::string name(const Task& task) const {
    if (!is_of_gradient(task)) return casync::to_string(task.kind);
    const std::string& gradient = gradient_names_[task.gradient];
    if (task.kind == Kind::kBackward) return fmt::format("Backward {}", gradient);
    if (casync::is_local(task) || casync::is_of_group(task)) {
      return fmt::format("{} {}", casync::to_string(task.kind), gradient);
    }
    return fmt::format("{} {}[{}]", casync::to_string(task.kind), gradient, task.partition);
  }

  OrderedJson arguments(TaskId id) const {
    const Task& task = graph_[id];
    OrderedJson arguments{{"task", id}};
    if (!timeline_.slowed.empty() && timeline_.slowed[id].count() > 0) {
      arguments["slowed_us"] = microseconds(timeline_.slowed[id]);
    }
    if (!is_of_gradient(task)) return arguments;
    arguments["gradient"] = gradient_names_[task.gradient];
    if (task.kind == Kind::kBackward) return arguments;
    arguments["partition"] = task.partition;
    const bool has_bytes = is_message_end(task.kind) || task.kind == Kind::kAllReduce ||
                           casync::is_local(task) || casync::is_of_group(task);
    arguments[has_bytes ? "bytes" : "elements"] = task.amount;
    if (is_message_end(task.kind)) {
      arguments[task.kind == Kind::kSend ? "to" : "from"] = graph_.peer(task);
    }
    return arguments;
  }

  void write_task(TaskId id, int thread) {
    const Task& task = graph_[id];
    const double start = microseconds(timeline_.start[id]);
    events_.write({{"ph", "X"},
                   {"name", name(task)},
                   {"cat", casync::to_string(task.kind)},
                   {"pid", process(task.node)},
                   {"tid", thread},
                   {"ts", start},
                   {"dur", microseconds(timeline_.end[id] - timeline_.start[id])},
                   {"args", arguments(id)}});
    // Viewers attach an arrow to the event that was written last on its thread, here the task's.
    if (task.kind == Kind::kSend) {
      for (const TaskId next : casync::successors(graph_, id)) {
        if (graph_[next].kind == Kind::kRecv) write_flow("s", next, task.node, thread, start);
      }
    } else if (task.kind == Kind::kRecv) {
      write_flow("f", id, task.node, thread, start);
    }
  }

  /// Writes an end of an arrow. Its ID combines the Recv's task ID with the timeline's index.
  void write_flow(const char* phase, TaskId recv, std::uint32_t node, int thread, double at) {
    const std::uint64_t flow = std::uint64_t{recv} * count_ + index_;
    events_.write({{"ph", phase},
                   {"name", "message"},
                   {"cat", "message"},
                   {"id", flow},
                   {"pid", process(node)},
                   {"tid", thread},
                   {"ts", at},
                   {"bp", "e"}});
  }

  EventWriter& events_;
  const TaskGraph& graph_;
  const std::vector<std::string>& gradient_names_;
  const Timeline& timeline_;
  const std::size_t index_, count_;
  std::vector<std::array<Lanes, kLaneNames.size()>> lanes_;
};

void require_names(const TaskGraph& graph, const std::vector<std::string>& gradient_names) {
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (is_of_gradient(task) && task.gradient >= gradient_names.size()) {
      throw std::invalid_argument(fmt::format("{} has no name among the {} gradient names given",
                                              casync::describe(graph, id), gradient_names.size()));
    }
  }
}

}  // namespace

void write_chrome_trace(std::ostream& out, const TaskGraph& graph,
                        const std::vector<std::string>& gradient_names,
                        const std::vector<const Timeline*>& timelines,
                        const TraceSubject& subject) {
  require_names(graph, gradient_names);
  for (const Timeline* timeline : timelines) require_same_graph(graph, *timeline);
  EventWriter events(out);
  for (std::size_t index = 0; index < timelines.size(); ++index) {
    TimelineWriter(events, graph, gradient_names, *timelines[index], index, timelines.size())
        .write();
  }
  events.finish(subject);
}

}  // namespace hipress::traces
