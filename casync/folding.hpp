#pragma once

#include <cstdint>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// Folding: where all nodes do the same work, only one node's share of the tasks is expanded. The
/// tasks of all other nodes are never made.
///
/// Rotate the cluster by one node: partition k of what node i does becomes partition k+1 of what
/// node i+1 does (the last of each N becomes the first). A plan with equal slices and K a multiple
/// of N is its own image, so in a cluster of equal nodes the timelines of all nodes are equal. The
/// proof is by induction over time: resources choose by ready time, gradient, peer offset and
/// partition, and two tasks that wait for one resource and agree in the first three belong to
/// different cycles of N partitions. The order of these cycles is the same on all nodes. So it is
/// enough to expand partitions 0, N, 2N, …, each over all its nodes, and to run their tasks on the
/// resources of one node: these tasks are what that node does for the other partitions.
///
/// Rewrites (rewrites.hpp) and back-to-back iterations work on the folded graph. The result is what
/// folding the rewritten whole graph would give:
///  - Where a rewrite puts a task depends on its node, unit, depth, kind, algorithm and ready time.
///    A rotation changes only the node: depths are lengths of paths, a rotated path is a path, and
///    a path of the folded graph is one of the whole graph rotated from edge to edge. So the tasks
///    that are put together on node i are, rotated, those put together on node i+1. In the folded
///    graph, where all nodes count as one, they are those put together on the first node.
///  - Batches are cut, and their leaders chosen, in the order of service. By the argument above
///    this order is the same on every node. All slices of a unit are equal, so a batch reaches the
///    same size at the same task.
///  - The Joins between phases without pipelining, and the edges between iterations, belong to one
///    node each, and rotate with it.
/// A rotation maps the edges that rewrites add to one another too, so the induction over time holds
/// for the rewritten graph.
namespace hipress::casync {

/// Whether a plan's graph can be folded.
struct Foldability {
  enum Kind : std::uint8_t {
    kExact,       ///< the folded graph gives the times of the whole one
    kBounded,     ///< some slices are shorter: folded, all are as long as the first
    kImpossible,  ///< nodes do different things
  };
  Kind kind = kExact;
  std::string why = {};  ///< unless exact: the first gradient that stands in the way, and how
};
Foldability foldable(const models::Model& model, const Plan& plan);

/// Number of tasks of the whole graph. Each task of a folded graph counts once per node, but the
/// Join of an AllReduce counts once in all: it is on the first node alone. For graphs with
/// pipelining only: without it, that Join has phases of its own.
std::int64_t whole_tasks(const TaskGraph& graph);

/// The same for the graph that expand() would make of all nodes, before it exists. With pipelining.
/// A double, since there is no limit to what a plan can ask for. Throws std::invalid_argument as
/// make_layout().
double whole_tasks(const models::Model& model, const Plan& plan);

/// A model and a plan for it.
struct PlannedModel {
  models::Model model;
  Plan plan;
};

enum class SliceLength : std::uint8_t { kShortest, kLongest };

/// The model and plan with every gradient so long that all its slices are as long as the shortest,
/// or the longest, that the plan gives it. Bulk groups and their members stay as they are. For
/// bounds on what folding changed.
PlannedModel with_even_slices(const models::Model& model, const Plan& plan, SliceLength length);

}  // namespace hipress::casync
