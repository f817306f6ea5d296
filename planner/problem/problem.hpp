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

/// What a plan may be besides its gradients' decisions.
enum class Grouping : std::uint8_t {
  kNone,  ///< no bulk groups and no batches: all that SeCoPaPlan.txt can say
  kAny,
};
enum class OrderChoice : std::uint8_t { kReady, kNeed, kBest };

/// How long a search that iterates may go on.
struct Limits {
  double budget_s = 2;            ///< seconds from its start; 0: only what needs no search
  std::int64_t evaluations = -1;  ///< plans to simulate, instead of budget_s; negative: not given
  std::uint64_t seed = 0;
  unsigned jobs = 1;  ///< threads; more: the same plan sooner
  /// Set from outside (by a signal, say): the search ends with the best plan so far.
  io::InterruptFlag interrupted = {};
  /// Called now and then with the share of the budget used and the best iteration time so far, in
  /// seconds. May be empty.
  std::function<void(double share, double best_s)> progress = {};
};

/// Whether the search is to end with what it has.
inline bool is_interrupted(const Limits& limits) { return limits.interrupted.is_set(); }

struct Choices;

/// Kinds of jobs, by their schedule's treatment of gradients.
enum class JobKind : std::uint8_t {
  kAveraging,     ///< all nodes get the means of all gradients in every step: ddp
  kLocalUpdates,  ///< nodes train alone between means
  kSharding,      ///< nodes gather shards of parameters, and reduce gradients to shards
};
JobKind kind_of(const casync::Schedule& schedule);

/// Below what runs differ by: a plan that is faster by less is not worth compressing for.
inline constexpr double kTolerance = 0.005;

/// What is to be planned.
struct Problem {
  const models::Model& model;
  /// A row of casync::topologies(); "best": all of them, also one for what is compressed and
  /// another for what is raw
  std::string topology = "ps";
  std::uint32_t nodes = 16;
  std::vector<std::string> algorithms;      ///< the ones a plan may use: "onebit", "tbq(tau=0.25)"
  const costs::Profile* profile = nullptr;  ///< of SeCoPa's formulas; null: the published costs
  const Machines* machines = nullptr;       ///< what plans are simulated on; null: nothing is
  Grouping grouping = Grouping::kNone;
  OrderChoice transfer_order = OrderChoice::kReady;
  Limits limits = {};
  /// The option set that passes, explanations and the lower bound keep to: a search row's
  /// `choices`.
  Choices (*choices)(const Problem& problem) = nullptr;  ///< null: make_choices()
  AccuracyOrder accuracy = {};                           ///< of algorithms
  plans::Trust trust = {};  ///< the programs that plans which are given may bring
  /// How much longer an iteration may be, relatively, for giving up less of the gradients. Larger:
  /// less is compressed; 0: only what costs nothing.
  double tolerance = kTolerance;
  casync::Schedule schedule = {};                         ///< of all plans that may be the answer
  std::string shards_by = std::string(casync::kLibrary);  ///< Plan::shards_by of sharded plans
  std::string optimizer = "adamw";        ///< row of optimizers() whose state counts as memory
  std::int64_t memory_bytes = INT64_MAX;  ///< of each GPU
  std::int64_t activation_bytes = 0;  ///< of that for activations, whatever the plan; 0: unknown
  std::string today = {};  ///< baseline that the job runs today; empty: the default of its kind
  std::shared_ptr<const Learning> learning = {};  ///< null: steps are taken to be DDP's
  std::string plan_file = {};                     ///< of the plan that is given; empty: none
};

/// Whether a plan may send the gradient so: with one of the problem's algorithms, or with the cast
/// that leaves it what it is.
bool allows(const Problem& problem, const models::Gradient& gradient, const std::string& algorithm);
/// Whether the plan sends all of its gradients so, or raw.
bool allows(const Problem& problem, const casync::Plan& plan);

/// The topologies that a problem leaves to choose from for compressed gradients: "best" has those
/// of encoded messages alone only where an algorithm's are sparse.
std::vector<std::string> topologies_of(const Problem& problem);

/// True if the topology, a row of casync::topologies() or "best", carries raw values alone:
/// uncompressed gradients, and factors.
bool sends_raw_alone(const std::string& topology);

/// True if some gradient is not fp32. A topology that sends_raw_alone() cannot carry it.
bool has_half_precision(const models::Model& model);

/// The algorithm of that name sends factors of whole gradients, which are averaged.
bool is_additive(const std::string& algorithm);

/// Why no plan of the problem can compress the gradient with that algorithm; empty: one can.
std::string refusal(const Problem& problem, const models::Gradient& gradient,
                    const casync::Algorithm& algorithm);

/// Whether plans of the problem may compress something.
bool may_compress(const Problem& problem);

/// Steps that a plan needs for a loss over DDP's: as the problem's pilot says, and 1 without one.
/// Infinitely many where the pilot does not know.
double steps_of(const Problem& problem, const casync::Plan& plan);

/// How the plan's raw gradients travel.
std::string raw_topology_of(const casync::Plan& plan);

/// The same plan, said as one of a single topology where it compresses nothing and raw gradients
/// have a topology of their own.
casync::Plan in_one_topology(casync::Plan plan);

/// The algorithm that a search for lossy compression uses: the first of `names` that is no mere
/// cast to half precision, or the first if all are. `names` must not be empty.
const std::string& first_lossy(const std::vector<std::string>& names);

/// Those that send messages of slices, which SeCoPa's formulas are about, and not factors.
std::vector<std::string> of_slices(const std::vector<std::string>& names);

/// What a plan must know of the algorithm called `name`. std::invalid_argument that lists the
/// algorithms.
casync::Algorithm algorithm(const std::string& name);

}  // namespace hipress::planner
