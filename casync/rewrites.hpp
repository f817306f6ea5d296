#pragma once

#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

// Rewrites of a graph whose ids are a topological order. They add tasks and edges, after which ids
// may not be a topological order: call GraphBuilder::sort().

/// Fuses small Encode, Decode and Merge tasks of a node into batches of one launch each. The first
/// task of a batch becomes its leader (kLeader), which waits for the predecessors of all its
/// members. The other members (kBatched) wait for the leader.
///
/// A batch holds tasks of one kind, algorithm and *depth*, whose units' ready times fit `rule`. The
/// depth of a task is the largest number of tasks on a path up to and including it; computation and
/// Joins do not count. So an edge into a task that counts increases the depth, and no other edge
/// decreases it. Fusing tasks of one depth makes no cycle: a cycle would contain an edge into a
/// batch, which increases the depth, and no edge could decrease it again.
void batch_launches(GraphBuilder& builder, const Aggregation& rule, const Layout& layout);

/// Removes pipelining from one iteration: from all tasks with ids of at least `first`. On every
/// node, units are synchronised one after the other, and each unit in phases. A unit's tasks of one
/// depth (as above, but within the unit, and with Joins) form two phases: first the tasks that
/// encode or decode, then those that transfer. No task of a phase starts before the tasks of
/// earlier phases have ended and their messages have arrived. So on a node, codecs do not overlap
/// with transfers, and gradients do not overlap with each other. The result has no cycle: along
/// every edge, the triple (place in Layout::order, depth, transfers) increases.
void remove_pipelining(GraphBuilder& builder, const Layout& layout, TaskId first);

}  // namespace hipress::casync
