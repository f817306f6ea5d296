#pragma once

#include <vector>

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

// Rewrites of a graph whose ids are a topological order. They add tasks and edges, after which ids
// may not be a topological order: call GraphBuilder::sort().

/// Fuses small Encode, Decode and Merge tasks of one node into one launch. The first task of a
/// batch becomes its leader (kLeader), which waits for the predecessors of all its members. The
/// others (kBatched) wait for the leader.
///
/// A batch holds tasks of one kind, algorithm and *depth*, whose units' ready times fit `rule`. The
/// depth of a task is the largest number of tasks on a path up to and including it, without
/// computation and Joins. So an edge into a counted task leads to a greater depth, and an edge into
/// computation or a Join never to a lesser one. Fusing tasks of one depth makes no cycle: a cycle
/// would contain an edge into a batch, which increases the depth, and no edge decreases it.
void batch_launches(GraphBuilder& builder, const Aggregation& rule, const Layout& layout);

/// Removes pipelining from one iteration, the tasks with ids of at least `first`. On every node,
/// units are synchronised one after the other, and each unit in phases. Each depth (as above, but
/// within the unit) has two phases: the tasks of all partitions that encode or decode, then those
/// that transfer. No task of a phase starts before the tasks of earlier phases have ended and their
/// messages have arrived. So on a node, codecs do not overlap with transfers, nor one gradient with
/// another. The result has no cycle: all edges ascend in (place in Layout::order, depth,
/// transfers).
void remove_pipelining(GraphBuilder& builder, const Layout& layout, TaskId first);

}  // namespace hipress::casync
