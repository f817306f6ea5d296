#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"

/// Timelines of a task graph: the start and the end of each task.
///
///     const Timeline predicted{.title = "predicted", .start = start, .end = end};  // by task ID
///     const Picoseconds iteration = makespan(predicted);
///     io::write_file("trace.json", [&](std::ostream& out) {
///       write_chrome_trace(out, graph, gradient_names, {&predicted, &measured});
///     });
///     for (const KindComparison& row : compare_by_kind(graph, predicted, measured)) {
///       fmt::print("{}: {:.3g} s off\n", to_string(row.kind), row.predicted_s - row.measured_s);
///     }
namespace hipress::traces {

using casync::Picoseconds;

/// Start and end of each task, by task ID. Time 0 is the start of the iteration. The simulator and
/// the executor each fill one, so predictions and measurements can be compared task by task.
struct Timeline {
  std::string title;  ///< "predicted", "measured"
  std::vector<Picoseconds> start;
  std::vector<Picoseconds> end;
  /// Slowdown of each task, compared with running alone. Empty if nothing slows computation.
  std::vector<Picoseconds> slowed = {};
};

/// Latest end of a task; 0 without tasks.
Picoseconds makespan(const Timeline& timeline);

/// Throws std::invalid_argument unless the timeline has one start and one end per task.
void require_same_graph(const casync::TaskGraph& graph, const Timeline& timeline);

/// Names for titles of pictures; empty: unknown.
struct TraceSubject {
  std::string model;
  std::string plan;
};

/// Writes Chrome/Perfetto JSON. Each timeline of a node is a process ("predicted node 0"), and the
/// timelines of a node are adjacent. Each serial resource is a thread: compute, codec, egress,
/// ingress, and local for messages between a node's GPUs; "egress 2" if messages share a port. An
/// arrow leads from each Send to its Recv. Tasks of zero length appear only as ends of arrows.
/// "otherData" holds the subject. Equal input gives identical bytes. Throws std::invalid_argument
/// for a timeline of another graph, or a gradient without a name.
void write_chrome_trace(std::ostream& out, const casync::TaskGraph& graph,
                        const std::vector<std::string>& gradient_names,
                        const std::vector<const Timeline*>& timelines,
                        const TraceSubject& subject = {});

/// Busy time of one kind of task in two timelines of a graph. It shows where a prediction is wrong.
/// Kinds that the graph lacks have no row.
struct KindComparison {
  casync::Kind kind;
  std::size_t tasks = 0;
  double predicted_s = 0;  ///< sum over tasks
  double measured_s = 0;
};
std::vector<KindComparison> compare_by_kind(const casync::TaskGraph& graph,
                                            const Timeline& predicted, const Timeline& measured);

}  // namespace hipress::traces
