#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

/// Plans for schedules whose parameters are in shards.
namespace hipress::planner {

/// True if gathers of parameters may be compressed with this algorithm: a block format, a cast or a
/// lossless codec. Others rely on error feedback, which gathers do not have.
bool may_gather(const Problem& problem, const std::string& algorithm);

/// True if reductions of gradients may be compressed with this algorithm: each shard's message must
/// not depend on the other shards.
bool may_reduce(const std::string& algorithm);

/// Reason why the schedule is impossible on the problem's nodes; empty: it is possible.
std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule);

/// Casts the raw half-precision layers of a plan that sends its shards in messages, since raw
/// messages are fp32. Other plans stay as they are.
void send_as_stored(const models::Model& model, casync::Plan& plan);

/// Finds a fast plan for a sharded schedule in two passes. The first tries every pair of forms for
/// all gathers and all reductions: raw, or one of the problem's algorithms that may_gather() or
/// may_reduce() allows. A pair replaces the best one so far if it is faster by more than the
/// tolerance; raw comes first. The second pass goes through the layers and makes gathers,
/// reductions or both raw, if the step stays within the tolerance of the first pass's time.
///
/// Shards travel by Problem::shards_by. If they travel as messages, send_as_stored() defines raw,
/// and no bound is known. If hosts have several nodes and hold whole groups of them, compressed
/// reductions may be exchanged within hosts first. `problem` must be a GpuProblem's.
SearchResult search_shards(const Problem& problem);

/// Makes the compressed reductions of a plan exchange within hosts first, if hosts have several
/// cards and hold equal parts of the shards: an exchange among all GPUs at once sends many times
/// the bytes between hosts. Returns this reason as a sentence; empty if the plan is unchanged.
std::string exchange_within_hosts(const models::Model& model, const costs::Cluster& cluster,
                                  casync::Plan& plan);

/// Plans that gather or reduce the gradient's layer in a different form, otherwise the same as
/// `plan`.
std::vector<casync::Plan> other_shards(const Problem& problem, const casync::Plan& plan,
                                       std::uint32_t gradient);

}  // namespace hipress::planner
