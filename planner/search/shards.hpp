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

/// True if reductions of gradients may be compressed with this algorithm: its messages, of one
/// shard each, do not depend on the other shards.
bool may_reduce(const std::string& algorithm);

/// Why the schedule is impossible on the problem's nodes; empty: it is possible.
std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule);

/// Lets a plan that sends its shards in messages cast what it leaves raw of layers in half
/// precision, since raw messages are fp32. Any other plan stays as it is.
void send_as_stored(const models::Model& model, casync::Plan& plan);

/// The fastest plan that two passes find for a sharded schedule. The first tries every pair of a
/// form for all gathers and a form for all reductions: raw, or one of the problem's algorithms
/// (gathers: those of may_gather(), reductions: of may_reduce()). A pair replaces the best before
/// it if it is faster by more than the tolerance; raw comes first. The second pass makes gathers,
/// reductions or both of one layer after the other raw, as long as the step stays within the
/// tolerance of the time that the first found.
///
/// Shards travel by Problem::shards_by. Where they travel as messages, raw is what send_as_stored()
/// makes of it, and no bound is known. Where hosts have several nodes and hold whole groups of
/// them, compressed reductions may be exchanged within hosts first. `problem` is a GpuProblem's.
SearchResult search_shards(const Problem& problem);

/// Plans that gather or reduce the gradient's layer in another form, all else as in `plan`.
std::vector<casync::Plan> other_shards(const Problem& problem, const casync::Plan& plan,
                                       std::uint32_t gradient);

}  // namespace hipress::planner
