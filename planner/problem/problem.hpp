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
  double budget_s = 2;  ///< duration in seconds; 0: only plans that need no search
  /// Number of plans to simulate, instead of budget_s; negative: unset.
  std::int64_t evaluations = -1;
  std::uint64_t seed = 0;
  unsigned jobs = 1;  ///< number of threads; more: the same plan sooner
  /// Set from outside, for example by a signal. The search then ends with the best plan so far.
  io::InterruptFlag interrupted = {};
  /// If set, receives the used share of the budget, and the best iteration time so far in seconds.
  std::function<void(double share, double best_s)> progress = {};
};

inline bool is_interrupted(const Limits& limits) { return limits.interrupted.is_set(); }

/// Kinds of jobs, by the way in which their schedule treats gradients.
enum class JobKind : std::uint8_t {
  kAveraging,     ///< all nodes get the means of all gradients in every step: ddp
  kLocalUpdates,  ///< nodes train alone, and average from time to time
  kSharding,      ///< nodes gather shards of parameters, and reduce gradients to shards
};
JobKind kind_of(const casync::Schedule& schedule);

/// Noise between runs, as a relative difference. A smaller saving does not justify compression.
inline constexpr double kTolerance = 0.005;

/// Planning problem: model, nodes, algorithms, machines, and limits.
struct Problem {
  const models::Model& model;
  /// Row of casync::topologies(), or "best": all suitable ones, separately for raw gradients.
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
  /// Relative increase of the iteration time that is accepted for a smaller loss. A larger
  /// tolerance compresses less; with 0, the loss is reduced only where that costs no time.
  double tolerance = kTolerance;
  casync::Schedule schedule = {};                         ///< schedule of every plan considered
  std::string shards_by = std::string(casync::kLibrary);  ///< Plan::shards_by of sharded plans
  std::string optimizer = "adamw";        ///< row of optimizers() whose state counts as memory
  std::int64_t memory_bytes = INT64_MAX;  ///< GPU memory, in bytes
  /// Memory in bytes that activations take on the GPU; 0: unknown.
  std::int64_t activation_bytes = 0;
  std::string today = {};  ///< baseline that the job runs today; empty: the default of its kind
  /// Results of the pilot; null: every plan needs as many steps as DDP.
  std::shared_ptr<const Learning> learning = {};
  std::string plan_file = {};  ///< file of a given plan; empty: none
};

/// True if the algorithm is one of the problem's, or the cast to the gradient's own dtype.
bool allows(const Problem& problem, const models::Gradient& gradient, const std::string& algorithm);
/// True if every decision of the plan is raw or allowed.
bool allows(const Problem& problem, const casync::Plan& plan);

/// Topologies to try for compressed gradients. If an algorithm is sparse, "best" includes
/// topologies that carry only encoded messages.
std::vector<std::string> topologies_of(const Problem& problem);

/// True if the topology, a row of casync::topologies() or "best", carries only raw values:
/// uncompressed gradients, and factors.
bool sends_raw_alone(const std::string& topology);

/// True if some gradient is not fp32. A topology that sends_raw_alone() cannot carry it.
bool has_half_precision(const models::Model& model);

/// True if the algorithm's messages are factors of whole gradients, which nodes average without
/// decoding (CodecTraits::additive).
bool is_additive(const std::string& algorithm);

/// Reason why no plan can compress the gradient with that algorithm; empty if one can.
std::string refusal(const Problem& problem, const models::Gradient& gradient,
                    const casync::Algorithm& algorithm);

/// True if plans of the problem may compress anything.
bool may_compress(const Problem& problem);

/// Steps that the plan needs for DDP's loss, relative to DDP's, from the problem's pilot; 1 without
/// a pilot, infinity if the pilot does not know the plan.
double steps_of(const Problem& problem, const casync::Plan& plan);

/// Name of the topology that carries the plan's raw gradients.
std::string raw_topology_of(const casync::Plan& plan);

/// Rewrites a plan that compresses nothing but has a topology for raw gradients, as a plan of that
/// one topology. Leaves other plans as they are.
casync::Plan in_one_topology(casync::Plan plan);

/// Algorithm for a search for lossy compression: the first of `names` that is not a cast to half
/// precision, or the first of all if all are casts. `names` must not be empty.
const std::string& first_lossy(const std::vector<std::string>& names);

/// The algorithms in `names` that send messages of slices, not factors, as SeCoPa's formulas
/// require.
std::vector<std::string> of_slices(const std::vector<std::string>& names);

/// Properties of the algorithm. Throws std::invalid_argument, with the known names, for an unknown
/// one.
casync::Algorithm algorithm(const std::string& name);

/// plans::place_in() of the algorithm called `name`.
std::int8_t place_in(std::vector<casync::Algorithm>& algorithms, const std::string& name);

/// Index into `algorithms` for sending the gradient uncompressed: kRaw, or the cast to the
/// gradient's own half precision, which is added to `algorithms` if it is missing.
std::int8_t as_it_is(std::vector<casync::Algorithm>& algorithms, const models::Gradient& gradient);

}  // namespace hipress::planner
