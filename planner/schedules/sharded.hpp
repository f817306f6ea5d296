#pragma once

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"

/// Plans for schedules whose parameters are in shards.
namespace hipress::planner {

/// The problem with every GPU a node, as shards need it. io::InputError where that cannot be said.
class GpuProblem {
 public:
  explicit GpuProblem(const Problem& problem);
  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

/// Whether parameters may be gathered so: as block formats, casts and lossless codecs do, since
/// nobody feeds back what a gather leaves out.
bool may_gather(const Problem& problem, const std::string& algorithm);

/// Whether gradients may be reduced to shards so: in messages of one shard each, by a codec that
/// has no use for the other shards.
bool may_reduce(const std::string& algorithm);

/// The most that a sharded plan gives up of a layer, in gathers or in reductions.
Coarseness coarseness_of_shards(const Problem& problem, const casync::Plan& plan);

/// Why no plan of the schedule fits the problem's nodes; empty: one does.
std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule);

/// Lets a plan that sends its shards in messages cast what it leaves raw of layers in half
/// precision, since raw messages are fp32. Any other plan stays as it is.
void send_as_stored(const models::Model& model, casync::Plan& plan);

/// A plan, and what no plan of its schedule takes less than.
struct ShardedPlan {
  casync::Plan plan;
  double lower_bound_s = 0;  ///< shard_bound() over all that is tried; 0: not known
};

/// The plan that takes least for a sharded schedule: gathers and reductions of all layers raw, in
/// half precision or compressed with any one of the problem's algorithms, whichever pair takes
/// least; then layer by layer what gives up less and does not take longer. Each step has to be
/// shorter by more than the tolerance, and layers may together give up at most that again.
/// All are by `shards_by` (Plan::shards_by); in messages no bound is known, and it is 0, and raw is
/// what send_as_stored() makes of it.
/// Gathers are compressed as may_gather() says. Where hosts have several nodes and hold whole
/// groups of them, compressed reductions may be exchanged within hosts first. `problem` is a
/// GpuProblem's.
ShardedPlan plan_shards(const Problem& problem, const casync::Schedule& schedule,
                        const std::string& shards_by = std::string(casync::kLibrary));

}  // namespace hipress::planner
