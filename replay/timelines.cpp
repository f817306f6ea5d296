#include "replay/timelines.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "job/gather.hpp"

namespace hipress::replay {
namespace {

using casync::Kind;
using casync::Picoseconds;
using casync::Task;
using casync::TaskId;

using Times = RecordedRun::Times;

/// Places a node's computation as one stream: a task starts when the previous one ends.
void place_computation(const casync::TaskGraph& graph, traces::Timeline& timeline,
                       Picoseconds forward) {
  std::vector<Picoseconds> reached(graph.nodes, Picoseconds{0});
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (!is_computation(task)) continue;
    timeline.start[id] = reached[task.node];
    if (task.kind == Kind::kForward) timeline.end[id] = forward;
    reached[task.node] = timeline.end[id];
  }
}

void end_sends_on_arrival(const casync::TaskGraph& graph, traces::Timeline& timeline) {
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kSend)
      timeline.end[id] = timeline.end[runtime::receive_of(graph, id)];
  }
}

/// Serialises the Sends of each (source, destination) pair. A Send that was issued during another
/// one starts when that one has arrived. As in the simulator, it lasts as long as its own transfer.
void start_sends_one_after_the_other(const casync::TaskGraph& graph, traces::Timeline& timeline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<TaskId>> pairs;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (task.kind == Kind::kSend) pairs[{task.node, graph.peer(task)}].push_back(id);
  }
  for (auto& [pair, sends] : pairs) {
    std::ranges::stable_sort(sends, {}, [&](TaskId id) { return timeline.end[id]; });
    for (std::size_t i = 0; i < sends.size(); ++i) {
      Picoseconds& start = timeline.start[sends[i]];
      if (i > 0) start = std::max(start, timeline.end[sends[i - 1]]);
      // Start and arrival come from two devices' clocks, which agree only to a few microseconds.
      start = std::min(start, timeline.end[sends[i]]);
    }
  }
}

/// Makes each all-reduce start when its last rank has issued it, as in the simulator.
void start_collectives_together(const casync::TaskGraph& graph, traces::Timeline& timeline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Picoseconds> last;
  for (const bool known : {false, true}) {
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const Task& task = graph[id];
      if (task.kind != Kind::kAllReduce) continue;
      Picoseconds& start = last[{task.gradient, task.partition}];
      start = std::max(start, timeline.start[id]);
      if (known) timeline.start[id] = std::min(start, timeline.end[id]);
    }
  }
}

}  // namespace

RecordedRun record_run(std::span<const runtime::Interval> intervals,
                       transport::Clock::time_point start) {
  RecordedRun run;
  run.tasks.reserve(intervals.size());
  for (const runtime::Interval& interval : intervals) {
    run.tasks.push_back({interval.start - start, interval.end - start});
  }
  return run;
}

traces::Timeline gather_timeline(transport::Endpoint& endpoint, const runtime::Program& program,
                                 const RecordedRun& mine) {
  const auto all = job::gather<Times>(endpoint, mine.tasks);
  if (endpoint.rank() != 0) return {};
  const casync::TaskGraph& graph = program.graph();
  const Picoseconds forward = program.forward();
  traces::Timeline timeline{.title = "measured",
                            .start = std::vector<Picoseconds>(graph.tasks()),
                            .end = std::vector<Picoseconds>(graph.tasks())};
  std::vector<std::size_t> next(graph.nodes, 0);
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const std::uint32_t node = graph[id].node;
    const Times& times = all[node].at(next[node]++);
    timeline.start[id] = forward + times.start;
    timeline.end[id] = forward + times.end;
  }
  if (!program.is_stepped()) place_computation(graph, timeline, forward);
  end_sends_on_arrival(graph, timeline);
  start_sends_one_after_the_other(graph, timeline);
  start_collectives_together(graph, timeline);
  return timeline;
}

}  // namespace hipress::replay
