#pragma once

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

/// What a graph is for; to be run, tasks name the memory that they work on.
enum class Purpose : std::uint8_t { kSimulate, kRun };

/// The graph of steps of a sharded schedule (Timetable::sharding), one behind the other: a step
/// begins when all reductions of the one before have ended, with the model's optimizer time. A
/// part is a layer, in the order of forward, and one unit; the layers' own order is that of their
/// parts.
///
/// Every layer is gathered before it is used: encoded shards travel by a library's AllGather, and
/// are decoded unless they are in half precision, in which they are used. The k-th layer to be
/// gathered waits until the (k − in_flight)-th is no longer used. In backward the layer before the
/// one at work is gathered as Prefetch says. A layer's gradient is reduced by a ReduceScatter, or
/// encoded, if it is compressed otherwise than in half precision: shards are exchanged by an
/// AllToAll and added in fp32. A reduction waits for the one before it, and a backward pass for the
/// last but one, whose input it takes over. Collectives of one communicator follow one another in
/// the order in which they are issued. Where each group of neighbours has all shards, the mean of a
/// shard over groups follows its reduction, on a communicator of its own.
///
/// Shards in messages (Plan::shards_in_messages()) are gathered and reduced by the units'
/// strategies instead (Layout::parameters): each node begins when it is ready, and on it one
/// follows the other as on a communicator. A layer that is reduced is cut into as many partitions
/// as there are nodes; of G neighbours who have all shards the k-th has those that are k mod G.
/// Their sums, divided by N already, are added up over groups by a reduce-scatter and a gather, raw
/// or in half precision.
///
/// std::invalid_argument for groups that the nodes cannot be divided into.
TaskGraph expand_sharded(const models::Model& model, const Plan& plan, const Layout& layout,
                         int steps, Folding folding, Purpose purpose = Purpose::kSimulate);

/// The parts of a unit that a node of `nodes` has, each gradient's rounded up.
std::int64_t shard_elements(const Unit& unit, const models::Model& model, std::uint32_t nodes);

/// Bytes of all shards of a unit as the model's types store them.
std::int64_t stored_bytes(const Unit& unit, const models::Model& model, std::uint32_t nodes);

}  // namespace hipress::casync
