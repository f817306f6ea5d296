#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"
#include "planner/problem/search_result.hpp"

/// Plans for schedules that hold parameters in shards.
namespace hipress::planner {

/// True if this algorithm may compress the gathers of parameters: a block format, a cast or a
/// lossless codec. Other algorithms rely on error feedback, which gathers do not have.
bool may_gather(const Problem& problem, const std::string& algorithm);

/// True if the algorithm may compress reductions: no shard's message depends on other shards.
bool may_reduce(const std::string& algorithm);

/// Reason why the schedule is impossible on the problem's nodes; empty if it is possible.
std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule);

/// In a plan that sends shards in messages, compresses the raw half-precision layers by a cast,
/// since raw messages are fp32. Leaves other plans as they are.
void send_as_stored(const models::Model& model, casync::Plan& plan);

/// Finds a fast plan for a sharded schedule in two rounds. The first round tries all pairs of a
/// form for all gathers and a form for all reductions: raw, or one of the problem's algorithms that
/// may_gather() or may_reduce() allows. Raw comes first; another pair must be faster than the best
/// so far by more than the tolerance. The second round goes through the layers, and makes gathers,
/// reductions or both raw if the step stays within the tolerance of the first round's time.
///
/// Shards travel by Problem::shards_by. If they travel in messages, raw is as in send_as_stored(),
/// and no lower bound is known. Compressed reductions may be exchanged within hosts first if a
/// host's number of nodes is above 1 and divides that of the shards. `problem` must be a
/// GpuProblem's.
SearchResult search_shards(const Problem& problem);

/// Lets the compressed reductions exchange within hosts first, if hosts have several cards and hold
/// equal parts of the shards. An exchange among all GPUs at once would send many times as many
/// bytes between hosts. Returns this reason as a sentence; empty if the plan is unchanged.
std::string exchange_within_hosts(const models::Model& model, const costs::Cluster& cluster,
                                  casync::Plan& plan);

/// Plans that gather or reduce the layer of the gradient in another form, and are otherwise `plan`.
std::vector<casync::Plan> other_shards(const Problem& problem, const casync::Plan& plan,
                                       std::uint32_t gradient);

}  // namespace hipress::planner
