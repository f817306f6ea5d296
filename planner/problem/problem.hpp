#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"
#include "io/interrupt_flag.hpp"
#include "models/model.hpp"
#include "planner/problem/accuracy.hpp"
#include "planner/problem/learning.hpp"
#include "planner/problem/machines.hpp"
#include "plans/trust.hpp"

namespace hipress::planner {

/// Kinds of groups that a plan may have.
enum class Grouping : std::uint8_t {
  kNone,  ///< no bulk groups and no batches, as in SeCoPaPlan.txt
  kAny,
};
enum class OrderChoice : std::uint8_t { kReady, kNeed, kBest };

/// Limits of an iterative search.
struct Limits {
  double budget_s = 2;            ///< seconds from its start; 0: only what needs no search
  std::int64_t evaluations = -1;  ///< plans to simulate, instead of budget_s; negative: unset
  std::uint64_t seed = 0;
  unsigned jobs = 1;  ///< threads; more: the same plan sooner
  /// Set from outside, such as by a signal; the search then ends with the best plan so far.
  io::InterruptFlag interrupted = {};
  /// Progress callback: used share of the budget, and best iteration time so far in seconds. May be
  /// empty.
  std::function<void(double share, double best_s)> progress = {};
};

/// True if the search was interrupted.
inline bool is_interrupted(const Limits& limits) { return limits.interrupted.is_set(); }

/// Kinds of jobs, by their schedule's treatment of gradients.
enum class JobKind : std::uint8_t {
  kAveraging,     ///< all nodes get the means of all gradients in every step: ddp
  kLocalUpdates,  ///< nodes train alone between means
  kSharding,      ///< nodes gather shards of parameters, and reduce gradients to shards
};
JobKind kind_of(const casync::Schedule& schedule);

/// Relative difference within the noise between runs: a plan that is faster by less is not worth
/// compressing for.
inline constexpr double kTolerance = 0.005;

/// Planning problem: model, nodes, algorithms, machines, and limits.
struct Problem {
  const models::Model& model;
  /// Row of casync::topologies(), or "best": all of them, with separate topologies for compressed
  /// and raw gradients.
  std::string topology = "ps";
  std::uint32_t nodes = 16;
  std::vector<std::string> algorithms;      ///< allowed ones: "onebit", "tbq(tau=0.25)"
  const costs::Profile* profile = nullptr;  ///< profile for SeCoPa's formulas; null: the published
                                            ///< costs
  const Machines* machines = nullptr;       ///< machines to simulate plans on; null: no simulation
  Grouping grouping = Grouping::kNone;
  OrderChoice transfer_order = OrderChoice::kReady;
  Limits limits = {};
  AccuracyOrder accuracy = {};  ///< order of algorithms by loss
  plans::Trust trust = {};      ///< programs that given plans may bring
  /// Accepted relative increase of the iteration time for a smaller loss. With a larger one, less
  /// is compressed; with 0, the loss is reduced only where that costs no time.
  double tolerance = kTolerance;
  casync::Schedule schedule = {};                         ///< schedule of every plan considered
  std::string shards_by = std::string(casync::kLibrary);  ///< Plan::shards_by of sharded plans
  std::string optimizer = "adamw";        ///< row of optimizers() whose state counts as memory
  std::int64_t memory_bytes = INT64_MAX;  ///< GPU memory, in bytes
  std::int64_t activation_bytes = 0;      ///< the part of it that activations take; 0: unknown
  std::string today = {};  ///< baseline that the job runs today; empty: the default of its kind
  std::shared_ptr<const Learning> learning = {};  ///< pilot's results; null: as many steps as DDP
  std::string plan_file = {};                     ///< file of a given plan; empty: none
};

/// True if a plan may use this algorithm for the gradient: one of the problem's, or the cast to the
/// gradient's own type.
bool allows(const Problem& problem, const models::Gradient& gradient, const std::string& algorithm);
/// True if every decision of the plan is raw or allowed.
bool allows(const Problem& problem, const casync::Plan& plan);

/// Candidate topologies for compressed gradients. "best" includes those that carry only encoded
/// messages if an algorithm is sparse.
std::vector<std::string> topologies_of(const Problem& problem);

/// True if the topology, a row of casync::topologies() or "best", carries raw values alone:
/// uncompressed gradients, and factors.
bool sends_raw_alone(const std::string& topology);

/// True if some gradient is not fp32. A topology that sends_raw_alone() cannot carry it.
bool has_half_precision(const models::Model& model);

/// True if the algorithm of that name sends factors of whole gradients, which are averaged.
bool is_additive(const std::string& algorithm);

/// Reason why no plan of the problem can compress the gradient with that algorithm; empty: one can.
std::string refusal(const Problem& problem, const models::Gradient& gradient,
                    const casync::Algorithm& algorithm);

/// True if plans of the problem may compress anything.
bool may_compress(const Problem& problem);

/// Number of steps to a target loss relative to DDP's, from the problem's pilot; 1 without a pilot,
/// infinity if the pilot does not know.
double steps_of(const Problem& problem, const casync::Plan& plan);

/// Name of the topology of the plan's raw gradients.
std::string raw_topology_of(const casync::Plan& plan);

/// Rewrites a plan that compresses nothing, but has a raw topology, as a plan of that single
/// topology. Other plans stay as they are.
casync::Plan in_one_topology(casync::Plan plan);

/// Algorithm for a search for lossy compression: the first of `names` that is not a cast to half
/// precision, or the first if all are casts. `names` must not be empty.
const std::string& first_lossy(const std::vector<std::string>& names);

/// Filters `names`: algorithms that send messages of slices, not factors. SeCoPa's formulas apply
/// to these.
std::vector<std::string> of_slices(const std::vector<std::string>& names);

/// Properties of the algorithm called `name`. Throws std::invalid_argument, which lists the
/// algorithms, for an unknown name.
casync::Algorithm algorithm(const std::string& name);

/// plans::place_in() of the algorithm called `name`.
std::int8_t place_in(std::vector<casync::Algorithm>& algorithms, const std::string& name);

/// Uncompressed form of the gradient, as an index into `algorithms`: kRaw, or the cast to its own
/// half precision, which is added if missing.
std::int8_t as_it_is(std::vector<casync::Algorithm>& algorithms, const models::Gradient& gradient);

}  // namespace hipress::planner
