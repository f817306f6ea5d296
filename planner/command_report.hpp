#pragma once

#include <optional>
#include <vector>

#include "planner/baselines.hpp"
#include "planner/command_options.hpp"

/// What hipress-plan writes and prints.
namespace hipress::planner {

/// Simulated iteration times of the plan and of what it is compared with.
struct Comparison {
  std::optional<double> planned_s;  ///< none: its graph is too large
  std::vector<Baseline> baselines;
  std::optional<double> lower_bound_s;  ///< of the plans that the search chose from
  /// No plan that the search could have returned takes less time than this one.
  bool proved_optimal = false;
  /// How far from the best of them the plan can be at most.
  std::optional<double> gap() const;
};

/// Writes the plan as the options say. io::InputError for a plan YAML whose time is not known.
void write_plan(const Options& options, const models::Model& model, const SearchResult& found,
                const costs::Profile& profile, const std::optional<Comparison>& comparison);

/// One JSON object on stdout.
void print_json(const Problem& problem, const SearchResult& found, double search_s,
                const Comparison& comparison, const Analysis& analysis);

/// One line on stdout: what was planned.
void print_report(const Options& options, const Problem& problem, const casync::Plan& plan);

/// The iteration times on stdout.
void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison);

/// How to replay what a plan file does not say, and which of its costs nobody measured.
void add_replay_remarks(const Options& options, const models::Model& model,
                        const costs::Profile& profile, SearchResult& found);

}  // namespace hipress::planner
