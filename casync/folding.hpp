#pragma once

#include <cstdint>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// Folding: where every node does the same, one of them is expanded, and all others' tasks, before
/// they exist, are left out.
///
/// Rotating the cluster by one node, partition k of what node i does becomes partition k+1 of what
/// node i+1 does (the last of each N becomes the first). A plan with K a multiple of N and equal
/// slices is its own image, so in a cluster of equal nodes the timelines of all nodes are equal: by
/// induction over time, since resources choose by ready time, gradient, peer offset and partition,
/// and two tasks that wait for one resource and agree in the first three belong to different cycles
/// of N partitions, whose order is the same everywhere. So it is enough to expand the partitions 0,
/// N, 2N, …, each over all its nodes, and to run their tasks on the resources of one node: they are
/// what that node does for the other partitions.
///
/// Rewrites (rewrites.hpp) and back-to-back iterations are made of the folded graph, and give what
/// folding the rewritten whole graph would:
///  - Where they put a task depends on its node, unit, depth, kind, algorithm and ready time. A
///    rotation changes the node alone: depths are lengths of paths, rotating a path gives a path,
///    and a path of the folded graph is one of the whole graph rotated from edge to edge. So what
///    is put together on node i is, rotated, what is put together on node i+1, and in the folded
///    graph, where all nodes count as one, it is what is put together on the first.
///  - Batches are cut, and their leaders chosen, in the order of service, in which by the above
///    every node has the same; all slices of a unit are equal, so the same size is reached at the
///    same task.
///  - The Joins between phases without pipelining, and the edges between iterations, are of one
///    node each, and rotate with it.
/// The edges that they add are mapped to one another too, so the induction over time holds for
/// the rewritten graph.
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

/// Tasks of the whole graph, of which a folded one holds a share: a task of every node for each,
/// but one Join for each AllReduce, on the first. Of graphs with pipelining, without which that
/// Join has phases of its own.
std::int64_t whole_tasks(const TaskGraph& graph);

/// The same of the graph that expand() would make of all nodes, before it exists; a double, since
/// there is no limit to what a plan can ask for. With pipelining. std::invalid_argument as
/// make_layout().
double whole_tasks(const models::Model& model, const Plan& plan);

/// A model and a plan for it.
struct PlannedModel {
  models::Model model;
  Plan plan;
};

enum class SliceLength : std::uint8_t { kShortest, kLongest };

/// The same with every gradient so long that all its slices are as long as the shortest or the
/// longest that the plan gives it, bulk groups and their members as they are; for bounds on what
/// folding changed.
PlannedModel with_even_slices(const models::Model& model, const Plan& plan, SliceLength length);

}  // namespace hipress::casync
