#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"

/// Timelines of a task graph: when each task ran.
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

/// Start and end of each task, indexed by task ID; time 0 is the start of the iteration. The
/// simulator and the executor both fill one, so prediction and measurement compare task by task.
struct Timeline {
  std::string title;  ///< "predicted", "measured"
  std::vector<Picoseconds> start;
  std::vector<Picoseconds> end;
  /// Slowdown of each task against running alone; empty if nothing may have slowed computation.
  std::vector<Picoseconds> slowed = {};
};

/// Largest end; 0 without tasks.
Picoseconds makespan(const Timeline& timeline);

/// Throws std::invalid_argument unless the timeline has one start and one end per task.
void require_same_graph(const casync::TaskGraph& graph, const Timeline& timeline);

/// Names for titles of pictures; empty: unknown.
struct TraceSubject {
  std::string model;
  std::string plan;
};

/// Writes Chrome/Perfetto JSON: one process per timeline and node ("predicted node 0"), one thread
/// per serial resource (compute, codec, egress, ingress, and local for messages between a node's
/// GPUs; "egress 2" if messages share a port), and a flow arrow from each Send to its Recv. Tasks
/// of zero length appear only as ends of arrows. Timelines of a node are adjacent. "otherData"
/// holds the subject. Equal input gives identical bytes. Throws std::invalid_argument for a
/// timeline of a different graph, or a gradient without a name.
void write_chrome_trace(std::ostream& out, const casync::TaskGraph& graph,
                        const std::vector<std::string>& gradient_names,
                        const std::vector<const Timeline*>& timelines,
                        const TraceSubject& subject = {});

/// Busy time of a kind in two timelines of one graph, which locates errors of a prediction. Kinds
/// that the graph lacks have no row.
struct KindComparison {
  casync::Kind kind;
  std::size_t tasks = 0;
  double predicted_s = 0;  ///< sum over tasks
  double measured_s = 0;
};
std::vector<KindComparison> compare_by_kind(const casync::TaskGraph& graph,
                                            const Timeline& predicted, const Timeline& measured);

}  // namespace hipress::traces
