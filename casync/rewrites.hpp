#pragma once

#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

// Rewrites of a graph whose ids are a topological order. They add tasks and edges, and leave ids
// that may not be one: GraphBuilder::sort() makes them one again.

/// Makes one launch of small Encode, Decode and Merge tasks of one node: the first of a batch
/// becomes its leader, which waits for the predecessors of all, and the others wait for the leader
/// (kLeader, kBatched).
///
/// A batch holds tasks of one kind, algorithm and *depth*, and of units whose ready times fit
/// `rule`. The depth of a task is the greatest number of tasks that are neither computation nor
/// Join on a path up to and including it. So an edge into such a task goes to a greater depth, one
/// into computation or a Join not to a lesser one, and merging tasks of one depth makes no cycle:
/// a cycle has an edge into a batch, which goes deeper, and none that goes back.
void batch_launches(GraphBuilder& builder, const Aggregation& rule, const Layout& layout);

/// Takes out what pipelining gains: on every node, units are synchronised one after the other, and
/// each in phases (two for each depth, as above but within the unit: the tasks of all partitions
/// that encode or decode, then those that transfer).
/// No task of a phase starts before those of the phases before it have ended and their messages
/// have arrived, so that on a node coding does not overlap with transfers, and no gradient with
/// another. Applies to the tasks from `first` on, which are one iteration. Makes no cycle: all
/// edges go up in (place in Layout::order, depth, transfers).
void remove_pipelining(GraphBuilder& builder, const Layout& layout, TaskId first);

}  // namespace hipress::casync
