#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "planner/advice/analysis.hpp"
#include "planner/search/search.hpp"
#include "plans/trust.hpp"

namespace hipress::planner {

/// Threads that simulate: a core each, but no more than share the memory well.
unsigned default_jobs();

/// What is asked of the planner, in the words of whoever asks: names, files, quantities with units.
struct Request {
  std::string input = "input.txt";  ///< what plans::read_input() and models::read_model() take
  std::string topology = "PS";      ///< a row of casync::strategies(), or BEST
  bool topology_given = false;      ///< else a plan YAML says its own
  std::uint32_t nodes = 0;          ///< 0: the cluster file's, else 16, as SeCoPa.py's
  costs::MachineOptions machines;
  models::TimeOptions times;
  std::string algorithms = "onebit,fp16";  ///< that the plan may use, with commas; or none
  std::string coarsest;                    ///< empty: any
  std::vector<std::string> accuracy;       ///< as parse_accuracy() takes it
  std::string search;                    ///< empty: timeline with a profile or cluster, else secopa
  std::string grouping = "auto";         ///< any, none, or auto: any in a plan YAML
  std::string transfer_order = "ready";  ///< ready, need or best
  std::string network = "fair";          ///< port or fair
  std::optional<double> budget_s;
  std::optional<std::int64_t> evaluations;
  double tolerance = kTolerance;
  std::uint64_t seed = 0;
  unsigned jobs = default_jobs();
  /// What the plan is where the verdict is not to compress: advised, or fastest.
  std::string write = "advised";
  AnalysisOptions analysis;
  plans::Trust trust;

  bool writes_fastest() const { return write == "fastest"; }
  std::string search_name() const {
    if (!search.empty()) return search;
    return machines.profile.empty() && !machines.names_cluster() ? "secopa" : "timeline";
  }
};

/// Which files can hold the plan: SeCoPa's text says no groups, orders and levels of GPUs.
enum class PlanForm : std::uint8_t { kText, kYaml };

/// The row of casync::strategies(), or "best"; io::InputError if the search cannot choose.
std::string topology_of(const Request& request, const SearchRow& search);

/// All algorithms that a list names: "powersgd(rank=1|2)" is short for one of each value.
std::vector<std::string> named_algorithms(const std::string& list);

/// What is to be planned, without machines, progress and interrupts. io::InputError for what the
/// search cannot do.
Problem problem_of(const Request& request, PlanForm form, const SearchRow& search,
                   const models::Model& model, const Warn& warn);

}  // namespace hipress::planner
