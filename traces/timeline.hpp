#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::traces {

using casync::Picoseconds;

/// When each task of a graph ran, indexed by task id; zero is the start of the iteration.
/// Both engines fill one, so a prediction and a measurement are compared task by task.
struct Timeline {
  std::string title;  ///< "predicted", "measured"
  std::vector<Picoseconds> start;
  std::vector<Picoseconds> end;
  /// How much longer each task took than alone, where something may have slowed computation.
  std::vector<Picoseconds> slowed = {};
};

/// The last end; 0 if there are no tasks.
Picoseconds makespan(const Timeline& timeline);

/// Throws std::invalid_argument unless the timeline has one start and one end per task of the
/// graph.
void require_same_graph(const casync::TaskGraph& graph, const Timeline& timeline);

/// What a trace is of, for titles of pictures; empty: not said.
struct TraceSubject {
  std::string model;
  std::string plan;
};

/// Writes Chrome/Perfetto JSON: one process per timeline and node ("predicted node 0"), one
/// thread per serial resource (compute, codec, egress, ingress, and local for messages
/// between a node's GPUs; "egress 2" where messages share a port), and a flow arrow from each
/// Send to its Recv. Tasks of no length are left out, except as ends of arrows. The timelines
/// of one node lie beside each other. "otherData" holds the subject. Byte-identical for equal
/// input. std::invalid_argument for a timeline of another graph, or a gradient without a
/// name.
void write_chrome_trace(std::ostream& out, const casync::TaskGraph& graph,
                        const std::vector<std::string>& gradient_names,
                        const std::vector<const Timeline*>& timelines,
                        const TraceSubject& subject = {});

/// Busy time by kind in two timelines of one graph: where a prediction goes wrong. Kinds that the
/// graph lacks have no row.
struct KindComparison {
  casync::Kind kind;
  std::size_t tasks = 0;
  double predicted_s = 0;  ///< sum over tasks
  double measured_s = 0;
};
std::vector<KindComparison> compare_by_kind(const casync::TaskGraph& graph,
                                            const Timeline& predicted, const Timeline& measured);

}  // namespace hipress::traces
