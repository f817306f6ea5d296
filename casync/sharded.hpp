#pragma once

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

/// What a graph is for; to be run, tasks name the memory that they work on.
enum class Purpose : std::uint8_t { kSimulate, kRun };

/// The graph of steps of a sharded schedule (Timetable::sharding), one behind the other. A
/// step begins, with the model's optimizer time, when all reductions of the step before it
/// have ended. A part is one layer and one unit. Parts, and so layers, are in the order of
/// forward.
///
/// Every layer is gathered before it is used. Encoded shards travel by a library's AllGather and
/// are then decoded; those in half precision are used as they are. The k-th layer to be gathered
/// waits until the (k − in_flight)-th is no longer used. In backward, Prefetch says when the layer
/// before the one at work is gathered. A layer's gradient is reduced by a ReduceScatter. If
/// compressed otherwise than in half precision, it is encoded, and its shards are exchanged by an
/// AllToAll and added in fp32. A reduction waits for the one before it; a backward pass waits for
/// the last reduction but one, whose input it takes over. Collectives of one communicator follow
/// one another in the order in which they are issued. Where each group of neighbours has all
/// shards, a shard's reduction is followed by its mean over groups, on a communicator of its own.
///
/// Shards in messages (Plan::shards_in_messages()) are gathered and reduced by the units'
/// topologies instead (Layout::parameters). Each node begins when it is ready, and runs these
/// operations one after the other, as on a communicator. A layer that is reduced is cut into as
/// many partitions as there are nodes. Of G neighbours who have all shards, the k-th has the
/// partitions with numbers ≡ k (mod G). Their sums, already divided by N, are added up over groups
/// by a reduce-scatter and a gather, raw or in half precision.
///
/// std::invalid_argument for groups that the nodes cannot be divided into.
TaskGraph expand_sharded(const models::Model& model, const Plan& plan, const Layout& layout,
                         int steps, Folding folding, Purpose purpose = Purpose::kSimulate);

/// The parts of a unit that a node of `nodes` has, each gradient's rounded up.
std::int64_t shard_elements(const Unit& unit, const models::Model& model, std::uint32_t nodes);

/// Bytes of all shards of a unit as the model's types store them.
std::int64_t stored_bytes(const Unit& unit, const models::Model& model, std::uint32_t nodes);

}  // namespace hipress::casync
