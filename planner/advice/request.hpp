#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "planner/advice/analysis.hpp"
#include "planner/problem/state_memory.hpp"
#include "planner/search/search.hpp"
#include "plans/trust.hpp"

namespace hipress::planner {

/// Number of threads for simulations: one per core, up to the number that memory allows.
unsigned default_jobs();

inline constexpr std::uint32_t kMaxNodes = 1u << 20;
inline constexpr double kMaxBudget_s = 1e6;  // 12 days
inline constexpr double kMaxTolerance = 0.5;
inline constexpr unsigned kMaxJobs = 1024;
inline constexpr std::uint32_t kMaxReplicas = 100'000;
inline constexpr double kMaxUncertainty = 0.99;

/// Algorithms known not to slow learning in any job; the default.
inline constexpr const char* kSafe = "int8block,fp16";

/// A request to the planner, in the user's words: names, files, quantities with units.
struct Request {
  std::string input = "input.txt";  ///< input of plans::read_input() and models::read_model()
  std::string topology = "PS";      ///< row of casync::topologies(), or BEST
  bool topology_given = false;      ///< false: a plan YAML's own topology counts
  std::uint32_t nodes = 0;          ///< 0: the cluster file's number, else 16, as in SeCoPa.py
  /// Machines; if none are named, those with which SeCoPa was published.
  costs::MachineOptions machines;
  models::TimeOptions times;  ///< times that replace or scale those of the model
  std::string wrap = {};      ///< rule for models::wrap(); empty: the model's own layers
  /// Algorithms that the plan may use, separated by commas, or "none". Empty: algorithms_of().
  std::string algorithms;
  std::string pilot;               ///< file made by hipress.pilot; empty: none
  std::string coarsest;            ///< coarsest algorithm allowed; empty: any
  casync::Schedule schedule = {};  ///< schedule: when gradients are synchronised
  std::string shards_by = std::string(casync::kLibrary);  ///< Plan::shards_by
  std::string optimizer = std::string(kUsualOptimizer);   ///< row of optimizers()
  std::int64_t memory_bytes = INT64_MAX;                  ///< memory of each GPU
  std::int64_t activation_bytes = 0;  ///< activations on each GPU, beside the state
  /// Row of all_baselines() that the job runs today; empty: the default of its kind.
  std::string today = {};
  std::vector<std::string> accuracy;  ///< texts for parse_accuracy()
  std::string search;             ///< empty: timeline if a profile or cluster is named, else secopa
  std::string grouping = "auto";  ///< any, none, or auto (any if the output is a plan YAML)
  std::string transfer_order = "ready";     ///< ready, need or best
  bool transfer_order_given = false;        ///< false: a given plan's own order counts
  std::string network = "fair";             ///< port or fair
  std::optional<double> budget_s;           ///< budget of search and passes, in seconds; unset: 2
  std::optional<std::int64_t> evaluations;  ///< plans to simulate, instead of budget_s
  double tolerance = kTolerance;            ///< accepted relative slowdown for less compression
  std::uint64_t seed = 0;                   ///< seed of the search's random moves
  unsigned jobs = default_jobs();           ///< threads for simulations; more: the same plan sooner
  /// Plan to return if the verdict is not to compress: advised, or fastest.
  std::string write = "advised";
  AnalysisOptions analysis;  ///< requested analyses, and the plan if one is given
  plans::Trust trust;        ///< programs that a plan file may bring, beside `algorithms`
  /// Model in memory, instead of `input`; null: none.
  std::shared_ptr<const models::Model> model = {};

  bool writes_fastest() const { return write == "fastest"; }
  /// The row of searches().
  std::string search_name() const {
    if (!search.empty()) return search;
    const bool drop_in = !machines.names_profile() && !machines.names_cluster();
    return drop_in ? "secopa" : "timeline";
  }
};

/// Throws io::InputError, naming the option, for an invalid word or number.
void check(const Request& request);

/// File format for the plan. SeCoPa's text cannot hold groups, transfer orders, or levels of GPUs.
enum class PlanForm : std::uint8_t { kText, kYaml };

/// The row of casync::topologies(), or "best" if the search can choose; else throws io::InputError.
std::string topology_of(const Request& request, const SearchRow& search);

/// Expands a list of algorithms: "powersgd(rank=1|2)" stands for two algorithms. Throws InputError
/// for more algorithms than a plan can mix.
std::vector<std::string> named_algorithms(const std::string& list);

/// Makes the planning problem of a request, without machines, progress and interrupts. Throws
/// io::InputError for a request that the search cannot handle.
Problem problem_of(const Request& request, PlanForm form, const SearchRow& search,
                   const models::Model& model, std::shared_ptr<const Learning> learning,
                   const Warn& warn);

/// Algorithms that the plan may use, separated by commas: those of the request, otherwise those of
/// its pilot (null: no pilot). With neither, a search that simulates may use the algorithms that
/// are known not to slow learning, and coarser ones up to `coarsest`.
std::string algorithms_of(const Request& request, const SearchRow& search,
                          const Learning* learning);

}  // namespace hipress::planner
