#pragma once

#include "casync/schedule.hpp"
#include "planner/problem/problem.hpp"

/// Plans for schedules whose parameters are in shards.
namespace hipress::planner {

/// The problem with every GPU as a node of its own, which sharded schedules need.
class GpuProblem {
 public:
  /// io::InputError where the machines cannot be described that way. What `problem` refers to must
  /// outlive the object.
  explicit GpuProblem(const Problem& problem);
  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

/// Whether gathers of parameters may be compressed with this algorithm: a block format, a cast or a
/// lossless codec. Others rely on error feedback, which gathers do not have.
bool may_gather(const Problem& problem, const std::string& algorithm);

/// Whether reductions of gradients may be compressed with this algorithm: its messages, of one
/// shard each, do not depend on the other shards.
bool may_reduce(const std::string& algorithm);

/// How coarse the coarsest message of a sharded plan is, over all layers' gathers and reductions.
Coarseness coarseness_of_shards(const Problem& problem, const casync::Plan& plan);

/// Why the schedule is impossible on the problem's nodes; empty: it is possible.
std::string refusal_of_nodes(const Problem& problem, const casync::Schedule& schedule);

/// Lets a plan that sends its shards in messages cast what it leaves raw of layers in half
/// precision, since raw messages are fp32. Any other plan stays as it is.
void send_as_stored(const models::Model& model, casync::Plan& plan);

/// A plan, and a lower bound for its schedule.
struct ShardedPlan {
  casync::Plan plan;
  /// Seconds that every plan of the schedule takes at least: the least shard_bound() of all
  /// choices; 0: not known.
  double lower_bound_s = 0;
};

/// The fastest plan that two passes find for a sharded schedule. The first tries every pair of a
/// form for all gathers and a form for all reductions: raw, or one of the problem's algorithms
/// (gathers: those of may_gather(), reductions: of may_reduce()). A pair replaces the best before
/// it if it is faster by more than the tolerance; raw comes first. The second pass makes gathers,
/// reductions or both of one layer after the other raw, as long as the step stays within the
/// tolerance of the time that the first found.
///
/// Shards travel by `shards_by` (Plan::shards_by). Where they travel as messages, raw is what
/// send_as_stored() makes of it, and no bound is known, so that it is 0. Where hosts have several
/// nodes and hold whole groups of them, compressed reductions may be exchanged within hosts first.
/// `problem` is a GpuProblem's.
ShardedPlan plan_shards(const Problem& problem, const casync::Schedule& schedule,
                        const std::string& shards_by = std::string(casync::kLibrary));

}  // namespace hipress::planner
