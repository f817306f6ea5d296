#pragma once

#include <cstdint>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// Folding: if all nodes do the same work, only one node's share of the tasks is expanded. The
/// tasks of all other nodes are never created.
///
/// Consider the rotation of the cluster by one node, which maps tasks of partition k on node i to
/// tasks of partition k+1 on node i+1 (the last of each N partitions to the first). If slices are
/// equal and K is a multiple of N, it leaves the plan unchanged. So in a cluster of equal nodes all
/// nodes' timelines are equal, by induction over time. A resource serves waiting tasks by ready
/// time, gradient, peer offset and partition. Two waiting tasks that agree in the first three
/// belong to different cycles of N partitions, and the order of cycles is the same on all nodes. So
/// it is enough to expand partitions 0, N, 2N, …, each over all its nodes, and to run their tasks
/// on the resources of one node: these tasks stand for that node's tasks of the other partitions.
///
/// Rewrites (rewrites.hpp) and back-to-back iterations work on the folded graph. The result is that
/// of rewriting the whole graph and then folding it:
///  - A rewrite groups tasks by node, unit, depth, kind, algorithm and ready time. A rotation
///    changes only the node. It keeps depths, which are lengths of paths: a rotated path is a path,
///    and each edge of a path in the folded graph is a rotated edge of the whole graph. So it maps
///    a group on node i to a group on node i+1. In the folded graph, where all nodes count as one,
///    both are the group on the first node.
///  - Batches are cut and their leaders are chosen in the order of service, which is the same on
///    every node by the argument above. All slices of a unit are equal, so a batch reaches the same
///    size at the same task.
///  - Without pipelining, each Join between phases belongs to one node and rotates with it. So does
///    each edge between iterations.
/// A rotation thus maps every edge that a rewrite adds to another edge that it adds. So the
/// induction over time holds for the rewritten graph, too.
namespace hipress::casync {

/// Result of foldable().
struct Foldability {
  enum Kind : std::uint8_t {
    kExact,       ///< the folded graph gives the times of the whole one
    kBounded,     ///< the folded graph makes all slices as long as the first, but some are shorter
    kImpossible,  ///< nodes do different things
  };
  Kind kind = kExact;
  std::string why = {};  ///< unless exact: the first gradient that prevents it, and the reason
};
Foldability foldable(const models::Model& model, const Plan& plan);

/// Number of tasks of the whole graph. Each task of a folded graph counts once per node, except the
/// Join of an AllReduce, which is on the first node only. Requires a graph with pipelining: without
/// it, that Join has phases of its own.
std::int64_t whole_tasks(const TaskGraph& graph);

/// Number of tasks of the unfolded graph with pipelining that expand() would make. The result is a
/// double, since a plan may ask for more tasks than an integer can count. Throws
/// std::invalid_argument as make_layout() does.
double whole_tasks(const models::Model& model, const Plan& plan);

/// A model and a plan for it.
struct PlannedModel {
  models::Model model;
  Plan plan;
};

enum class SliceLength : std::uint8_t { kShortest, kLongest };

/// Changes the length of every gradient so that all its slices are as long as its shortest, or its
/// longest, slice in the plan. Bulk groups and their members stay as they are. Used to bound the
/// error of folding.
PlannedModel with_even_slices(const models::Model& model, const Plan& plan, SliceLength length);

}  // namespace hipress::casync
