#pragma once

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"

namespace hipress::casync {

/// Purpose of a graph. In graphs to run, tasks name their buffers.
enum class Purpose : std::uint8_t { kSimulate, kRun };

/// The graph of `steps` successive steps of a sharded schedule (Timetable::sharding). A step begins
/// when all reductions of the previous step have ended. Its first task is the optimizer's. A part
/// is one layer and one unit. Parts are in the order of forward.
///
/// Gathers: every layer is gathered before it is used, by a library's AllGather. Encoded shards are
/// then decoded; shards in half precision are used as they are. The k-th gather waits until the
/// layer of gather k − in_flight is no longer used. In backward, Prefetch determines when the next
/// layer is gathered.
///
/// Reductions: a layer's gradient is reduced by a ReduceScatter. With a codec other than half
/// precision, each shard is encoded instead, sent to its node by an AllToAll, and added there in
/// fp32. A reduction waits for the one before it. A backward pass waits for the last reduction but
/// one, whose input buffer it reuses. With several groups that each hold all shards, a shard's
/// reduction is followed by its mean over groups, on a communicator of its own.
///
/// Collectives of one communicator follow one another in the order in which they are issued.
///
/// Shards in messages (Plan::shards_in_messages()) are gathered and reduced by the units'
/// topologies instead (Layout::parameters). Each node begins when it is ready. It runs these
/// operations one after the other, as on a communicator. A reduction has one partition per node. In
/// a group of G neighbours that holds all shards, the k-th node has the partitions with numbers ≡ k
/// (mod G). Their sums, already divided by N, are then added over groups by a reduce-scatter and a
/// gather, raw or in half precision.
///
/// Throws std::invalid_argument if the nodes cannot be divided into the groups.
TaskGraph expand_sharded(const models::Model& model, const Plan& plan, const Layout& layout,
                         int steps, Folding folding, Purpose purpose = Purpose::kSimulate);

/// Elements of one node's shard of a unit; each gradient's share is rounded up.
std::int64_t shard_elements(const Unit& unit, const models::Model& model, std::uint32_t nodes);

/// Bytes of all shards of a unit in the dtypes of the model.
std::int64_t stored_bytes(const Unit& unit, const models::Model& model, std::uint32_t nodes);

}  // namespace hipress::casync
