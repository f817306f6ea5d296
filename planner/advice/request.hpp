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

/// Threads that simulate: a core each, but no more than share the memory well.
unsigned default_jobs();

inline constexpr std::uint32_t kMaxNodes = 1u << 20;
inline constexpr double kMaxBudget_s = 1e6;  // 12 days
inline constexpr double kMaxTolerance = 0.5;
inline constexpr unsigned kMaxJobs = 1024;
inline constexpr std::uint32_t kMaxReplicas = 100'000;
inline constexpr double kMaxUncertainty = 0.99;

/// What is asked of the planner, in the words of whoever asks: names, files, quantities with units.
struct Request {
  std::string input = "input.txt";  ///< what plans::read_input() and models::read_model() take
  std::string topology = "PS";      ///< a row of casync::topologies(), or BEST
  bool topology_given = false;      ///< else a plan YAML says its own
  std::uint32_t nodes = 0;          ///< 0: the cluster file's, else 16, as SeCoPa.py's
  costs::MachineOptions machines;   ///< none named: those that SeCoPa was published with
  models::TimeOptions times;        ///< that the model has not, or that are scaled
  std::string wrap = {};            ///< as models::wrap() takes it; empty: layers as the model says
  /// Algorithms that the plan may use, with commas, or none. Empty: algorithms_of().
  std::string algorithms;
  std::string pilot;                                      ///< file of hipress.pilot; empty: none
  std::string coarsest;                                   ///< empty: any
  casync::Schedule schedule = {};                         ///< when gradients are synchronised
  std::string shards_by = std::string(casync::kLibrary);  ///< Plan::shards_by
  std::string optimizer = std::string(kUsualOptimizer);   ///< row of optimizers()
  std::int64_t memory_bytes = INT64_MAX;                  ///< of each GPU
  std::int64_t activation_bytes = 0;                      ///< of each GPU, beside the state
  /// Row of all_baselines() that the job runs today; empty: the default of its kind.
  std::string today = {};
  std::vector<std::string> accuracy;     ///< as parse_accuracy() takes it
  std::string search;                    ///< empty: timeline with a profile or cluster, else secopa
  std::string grouping = "auto";         ///< any, none, or auto: any in a plan YAML
  std::string transfer_order = "ready";  ///< ready, need or best
  bool transfer_order_given = false;     ///< else a plan that is given says its own
  std::string network = "fair";          ///< port or fair
  std::optional<double> budget_s;        ///< of the search and the passes; none: 2
  std::optional<std::int64_t> evaluations;  ///< plans to simulate, instead of budget_s
  double tolerance = kTolerance;            ///< relatively slower than this for compressing less
  std::uint64_t seed = 0;                   ///< of the search's random moves
  unsigned jobs = default_jobs();           ///< threads that simulate; more: the same plan sooner
  /// What the plan is where the verdict is not to compress: advised, or fastest.
  std::string write = "advised";
  AnalysisOptions analysis;  ///< what is asked about the plan, or about one that is given
  plans::Trust trust;        ///< beside `algorithms`, the programs that a plan file may bring

  bool writes_fastest() const { return write == "fastest"; }
  /// The row of searches().
  std::string search_name() const {
    if (!search.empty()) return search;
    const bool drop_in = !machines.names_profile() && !machines.names_cluster();
    return drop_in ? "secopa" : "timeline";
  }
};

/// io::InputError, which names the option, for a word or number that is none of those above.
void check(const Request& request);

/// Which files can hold the plan: SeCoPa's text says no groups, orders and levels of GPUs.
enum class PlanForm : std::uint8_t { kText, kYaml };

/// The row of casync::topologies(), or "best"; io::InputError if the search cannot choose.
std::string topology_of(const Request& request, const SearchRow& search);

/// All algorithms that a list names: "powersgd(rank=1|2)" is short for one of each value. An error
/// for more than a plan can mix.
std::vector<std::string> named_algorithms(const std::string& list);

/// What is to be planned, without machines, progress and interrupts. io::InputError for what the
/// search cannot do.
Problem problem_of(const Request& request, PlanForm form, const SearchRow& search,
                   const models::Model& model, std::shared_ptr<const Learning> learning,
                   const Warn& warn);

/// The algorithms that a request leaves the plan, with commas: those that it names, else those of
/// its pilot (null: none), else, for a search that simulates, those that are known not to slow
/// learning, and as much coarser ones as `coarsest` asks for.
std::string algorithms_of(const Request& request, const SearchRow& search,
                          const Learning* learning);

}  // namespace hipress::planner
