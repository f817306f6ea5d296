// Makes spans from tasks in three steps. Each task that occupies a resource of the node becomes a
// span of its lane. Spans that touch are merged. Spans are placed in rows without overlaps.

#include "report/spans.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace hipress::report {
namespace {

using casync::Kind;
using casync::Picoseconds;
using casync::Resource;
using casync::Task;
using casync::TaskGraph;
using casync::TaskId;

enum LaneIndex : std::uint8_t { kCompute, kCodec, kOut, kIn, kLocal, kCollectives, kLanes };
constexpr std::array<std::string_view, kLanes> kLaneNames{
    "computation", "encode, decode, merge", "sending", "receiving", "between GPUs", "collectives"};

/// A span and its lane.
struct Placed {
  LaneIndex lane = kCompute;
  Span span;
};

/// Sort key. Only spans with equal keys may be merged.
auto key(const Placed& placed, bool joins_units) {
  const Span& span = placed.span;
  return std::tuple(placed.lane, span.kind, joins_units ? 0 : span.first_unit);
}

bool has_amount(Kind kind) {
  return casync::resource_of(kind) != Resource::kCompute && kind != Kind::kJoin;
}

/// Collects the spans of the tasks of one node.
class Collector {
 public:
  Collector(const TaskGraph& graph, const traces::Timeline& timeline,
            const std::vector<TaskId>& critical_path, std::uint32_t node)
      : graph_(graph), timeline_(timeline), critical_(graph.tasks()), node_(node) {
    for (const TaskId id : critical_path) critical_[id] = true;
  }

  std::vector<Placed> collect() {
    for (TaskId id = 0; id < graph_.tasks(); ++id) {
      if (timeline_.end[id] > timeline_.start[id]) add(id);
    }
    return std::move(found_);
  }

 private:
  void add(TaskId id) {
    const Task& task = graph_[id];
    const bool is_here = graph_.representative(task.node) == node_;
    switch (casync::resource_of(task.kind)) {
      case Resource::kNone:
        return;
      case Resource::kCompute:
        return add_if(is_here, kCompute, id);
      case Resource::kCodec:
        return add_if(is_here, kCodec, id);
      case Resource::kLocal:
        return add_if(is_here, kLocal, id);
      case Resource::kCollective:
        return add_if(is_here, kCollectives, id);
      case Resource::kPorts:
        add_if(is_here, kOut, id);
        return add_if(graph_.representative(graph_.peer(task)) == node_, kIn, id);
    }
  }

  void add_if(bool is_here, LaneIndex lane, TaskId id) {
    if (!is_here) return;
    const Task& task = graph_[id];
    const bool of_unit = task.kind != Kind::kForward && task.kind != Kind::kSteps;
    const std::uint32_t unit = of_unit ? graph_.unit_of(task) : kNoUnit;
    found_.push_back({lane,
                      {.start = timeline_.start[id],
                       .end = timeline_.end[id],
                       .kind = task.kind,
                       .first_unit = unit,
                       .last_unit = unit,
                       .tasks = 1,
                       .amount = has_amount(task.kind) ? task.amount : 0,
                       .critical = critical_[id]}});
  }

  const TaskGraph& graph_;
  const traces::Timeline& timeline_;
  std::vector<bool> critical_;
  const std::uint32_t node_;
  std::vector<Placed> found_;
};

void extend(Span& span, const Span& by) {
  span.end = std::max(span.end, by.end);
  span.first_unit = std::min(span.first_unit, by.first_unit);
  span.last_unit = std::max(span.last_unit, by.last_unit);
  span.tasks += by.tasks;
  span.amount += by.amount;
  span.critical = span.critical || by.critical;
}

/// Merges spans of one lane and kind over gaps of at most `gap`. Unless `joins_units`, their unit
/// must also be the same.
std::vector<Placed> merged(std::vector<Placed> spans, Picoseconds gap, bool joins_units) {
  std::ranges::sort(spans, {}, [&](const Placed& placed) {
    return std::tuple(key(placed, joins_units), placed.span.start, placed.span.end);
  });
  std::vector<Placed> result;
  for (const Placed& next : spans) {
    const bool joins = !result.empty() &&
                       key(result.back(), joins_units) == key(next, joins_units) &&
                       next.span.start <= result.back().span.end + gap;
    if (joins) {
      extend(result.back().span, next.span);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

/// Places each span of a lane in the first row that is free at its start.
void place_in_rows(Lane& lane) {
  std::vector<Picoseconds> free_at;
  for (Span& span : lane.spans) {
    auto row = std::ranges::find_if(free_at, [&](Picoseconds free) { return free <= span.start; });
    if (row == free_at.end()) row = free_at.insert(row, Picoseconds{});
    *row = span.end;
    span.row = static_cast<std::uint32_t>(row - free_at.begin());
  }
  lane.rows = static_cast<std::uint32_t>(free_at.size());
}

}  // namespace

NodeTimeline node_timeline(const TaskGraph& graph, const traces::Timeline& timeline,
                           const std::vector<TaskId>& critical_path, std::uint32_t node,
                           std::size_t most_spans) {
  traces::require_same_graph(graph, timeline);
  NodeTimeline made = {.node = node};
  std::vector<Placed> spans =
      merged(Collector(graph, timeline, critical_path, node).collect(), made.gap, false);
  // The gap starts at half a pixel of a wide window, and doubles until it covers the timeline.
  constexpr int kFirstShare = 4096;
  const Picoseconds all = traces::makespan(timeline);
  for (const bool joins_units : {false, true}) {
    for (Picoseconds gap = all / kFirstShare + Picoseconds(1);
         spans.size() > most_spans && gap <= 2 * all; gap *= 2) {
      made.gap = gap;
      made.joins_units = joins_units;
      spans = merged(std::move(spans), gap, joins_units);
    }
  }
  std::ranges::stable_sort(spans, {}, [](const Placed& placed) { return placed.span.start; });
  std::array<Lane, kLanes> lanes;
  for (const Placed& placed : spans) lanes[placed.lane].spans.push_back(placed.span);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (lanes[lane].spans.empty()) continue;
    lanes[lane].name = kLaneNames[lane];
    place_in_rows(lanes[lane]);
    made.lanes.push_back(std::move(lanes[lane]));
  }
  return made;
}

}  // namespace hipress::report
