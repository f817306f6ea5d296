#pragma once

#include <optional>
#include <string>

#include "models/traced.hpp"
#include "planner/advice/advice.hpp"
#include "tools/plan/options.hpp"

/// What hipress-plan writes and prints.
namespace hipress::planner {

/// Writes the plan as the options say, in a YAML with its fallback. io::InputError for a plan YAML
/// whose time is not known.
void write_plan(const Options& options, const models::Model& model, const SearchResult& found,
                const costs::Profile& profile, const Comparison& comparison,
                const std::optional<plans::DenseFallback>& dense);

/// One JSON object on stdout; `traced`: of the job that the model was made of.
void print_json(const Advice& advice, const std::optional<models::Traced>& traced);

/// Profile, links and compute time, and why this profile.
std::string machines_of(const PreparedRequest& prepared, const Problem& problem);

/// One line on stdout: what was planned.
void print_report(const Options& options, const Problem& problem, const casync::Plan& plan);

/// The iteration times on stdout.
void print_table(const Options& options, const Problem& problem, const costs::Profile& profile,
                 const Comparison& comparison);

/// How to replay what a plan file does not say, and which of its costs nobody measured.
void add_replay_diagnostics(const Options& options, const models::Model& model,
                            const costs::Profile& profile, SearchResult& found);

}  // namespace hipress::planner
