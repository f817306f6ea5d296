#pragma once

#include <cstdint>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"

/// Folding: where every node does the same, one of them is expanded, and all others' tasks, before
/// they exist, are left out.
///
/// Turning the cluster by one node, partition k of what node i does becomes partition k+1 of what
/// node i+1 does (the last of each N becomes the first). A plan with K a multiple of N and equal
/// slices is its own image, so in a cluster of equal nodes the timelines of all nodes are equal: by
/// induction over time, since resources choose by ready time, gradient, rotation and partition, and
/// two tasks that wait for one resource and agree in the first three belong to different
/// turns of N partitions, whose order is the same everywhere. So it is enough to expand the
/// partitions 0, N, 2N, …, each over all its nodes, and to run their tasks on the resources of one
/// node: they are what that node does for the other partitions.
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

/// The model with every gradient so long that all its K slices are as long as the longest (or as
/// the shortest) that the plan gives it; for bounds on what folding changed.
models::Model with_longest_slices(const models::Model& model, const Plan& plan);
models::Model with_shortest_slices(const models::Model& model, const Plan& plan);

}  // namespace hipress::casync
