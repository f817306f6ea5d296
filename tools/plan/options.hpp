#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/machine_options.hpp"
#include "io/yaml.hpp"
#include "models/time_options.hpp"
#include "planner/advice/analysis.hpp"
#include "planner/search/search.hpp"

/// The command line of hipress-plan.
namespace hipress::planner {

/// What --job broadcast asks for.
struct BroadcastOptions {
  std::string bytes = {};  ///< of one tensor; empty: --input says what is sent
  std::optional<std::string> dtype = {};
  std::optional<std::uint32_t> root = {};
  std::optional<std::int32_t> chunks = {};
  bool lossless = false;
};

/// Threads that simulate: a core each, but no more than share the memory well.
unsigned default_jobs();

inline constexpr std::string_view kDefaultOutput = "SeCoPaPlan.txt";

struct Options {
  std::string job = "mean";
  BroadcastOptions broadcast;
  std::string input = "input.txt";
  bool input_given = false;
  std::string topology = "PS";
  bool topology_given = false;
  std::uint32_t nodes = 0;  ///< 0: the cluster file's, else kDefaultNodes
  costs::MachineOptions machines;
  models::TimeOptions times;
  std::string algorithms = "onebit,fp16";
  bool algorithms_given = false;
  std::string coarsest;               ///< empty: any
  std::vector<std::string> accuracy;  ///< as parse_accuracy() takes it
  std::string search;                 ///< empty: timeline with a profile or cluster, else secopa
  std::string grouping = "auto";
  std::string transfer_order = "ready";
  std::string network = "fair";
  std::optional<double> budget_s;
  std::optional<std::int64_t> evaluations;
  double tolerance = kTolerance;
  std::uint64_t seed = 0;
  unsigned jobs = default_jobs();
  std::string output{kDefaultOutput};
  bool json = false;
  /// What is written where the verdict is not to compress: its plan, or else the fastest.
  std::string write = "advised";
  bool writes_fastest() const { return write == "fastest"; }
  bool baselines = false;
  AnalysisOptions analysis;
  plans::Trust trust;

  bool yaml() const { return io::is_yaml_name(output); }
  /// Whether all times are printed; the drop-in for SeCoPa.py prints the verdict alone.
  bool prints_times() const {
    return json || baselines || yaml() || !machines.profile.empty() || machines.names_cluster() ||
           analysis.any();
  }
  /// What the report calls the plan.
  const std::string& plan_name() const { return analysis.plan.empty() ? output : analysis.plan; }
  std::string search_name() const {
    if (!search.empty()) return search;
    return machines.profile.empty() && !machines.names_cluster() ? "secopa" : "timeline";
  }
};

void declare_options(CLI::App& app, Options& options);

/// What is to be planned, without machines, progress and interrupts. io::InputError for what the
/// search cannot do.
Problem problem_of(const Options& options, const SearchRow& search, const models::Model& model);

/// The row of casync::strategies(), or "best"; io::InputError if the search cannot choose.
std::string topology_of(const Options& options, const SearchRow& search);

/// Warns of places of algorithms that were assumed, or given in vain.
void warn_of_assumptions(const Options& options, const Problem& problem);

void warn_of_unused(const Options& options, const SearchRow& search);

}  // namespace hipress::planner
