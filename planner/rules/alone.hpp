#pragma once

#include <span>
#include <string_view>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"

/// Plans in which a rule decides every gradient on its own, without simulation.
namespace hipress::planner {

/// A plan that needs no budget. Every searched plan is compared with it. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  /// Returns a plan without decisions if it makes no sense on these machines, or equals the plan of
  /// a different row.
  casync::Plan (*make)(const Problem& problem);
  bool compresses = true;  ///< false: a topology that sends_raw_alone() can carry it too
  /// Topology of the baseline for every problem; empty: the problem's.
  std::string_view topology = {};
  /// Uses the decisions of `make`, with the best bulk groups.
  bool grouped = false;
  /// Algorithm of the baseline for every problem; empty: the problem's.
  std::string_view algorithm = {};
  /// True if `make` simulates many plans.
  bool searches = false;
  /// True if it uses SeCoPa's formulas: only topologies with formulas can carry it
  /// (secopa_knows()).
  bool by_formulas = false;
  JobKind kind = JobKind::kAveraging;  ///< kind of jobs it is for
  /// Name in sentences, if a framework runs it as it is: "FSDP2 by default"; empty: none does.
  std::string_view title = {};
  /// True if jobs run it by default; of several, the last that makes a plan counts.
  bool is_default = false;

  /// True for a library's own collectives, whose nodes are GPUs (as_collectives_see()).
  bool is_collective() const { return !topology.empty(); }
  /// True if jobs of this kind can run it: those of its own kind, or any if it is a library's
  /// collective for averaging.
  bool is_for(JobKind job) const {
    return kind == job || (kind == JobKind::kAveraging && is_collective());
  }
};

/// Table of none, fp16, all, threshold_262144 and secopa. Each decides every gradient on its own,
/// without simulation, and is in every option set.
std::span<const BaselineRow> baselines();

/// Plans of those rows, also used by other rows.
namespace rules {
casync::Plan none(const Problem& problem);
casync::Plan fp16(const Problem& problem);
casync::Plan all(const Problem& problem);
casync::Plan threshold(const Problem& problem);  ///< threshold of 262144 elements
casync::Plan secopa(const Problem& problem);
}  // namespace rules

}  // namespace hipress::planner
