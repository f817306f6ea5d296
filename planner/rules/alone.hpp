#pragma once

#include <span>
#include <string_view>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"

/// Plans in which one rule decides every gradient on its own, without simulation.
namespace hipress::planner {

/// A plan that needs no search, with which every searched plan is compared. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  /// Makes the plan; one without decisions if it makes no sense here, or equals another row's.
  casync::Plan (*make)(const Problem& problem);
  bool compresses = true;  ///< false: topologies that sends_raw_alone() can carry it, too
  /// Topology of the baseline; empty: the problem's.
  std::string_view topology = {};
  /// True: takes the decisions of `make`, and the bulk groups that are best for them.
  bool grouped = false;
  /// Algorithm of the baseline; empty: the problem's.
  std::string_view algorithm = {};
  /// True: `make` simulates many plans.
  bool searches = false;
  /// True: only topologies with SeCoPa's formulas can carry it (secopa_knows()).
  bool by_formulas = false;
  JobKind kind = JobKind::kAveraging;  ///< kind of jobs that it is for
  /// Name in sentences of a baseline that a framework runs: "FSDP2 by default"; else empty.
  std::string_view title = {};
  /// True: jobs run it by default. If several rows do, the last one that makes a plan counts.
  bool is_default = false;

  /// True if it uses a library's collectives, whose nodes are GPUs (as_collectives_see()).
  bool is_collective() const { return !topology.empty(); }
  /// True if jobs of kind `job` can run it. Averaging by a library's collectives suits every job.
  bool is_for(JobKind job) const {
    return kind == job || (kind == JobKind::kAveraging && is_collective());
  }
};

/// Table of the baselines none, fp16, all, threshold_262144 and secopa. Each decides every gradient
/// on its own, without simulation. Their decisions are in every option set.
std::span<const BaselineRow> baselines();

/// Functions `make` of these rows; other rows use them, too.
namespace rules {
casync::Plan none(const Problem& problem);
casync::Plan fp16(const Problem& problem);
casync::Plan all(const Problem& problem);
/// Compresses gradients of at least 262144 elements.
casync::Plan threshold(const Problem& problem);
casync::Plan secopa(const Problem& problem);
}  // namespace rules

}  // namespace hipress::planner
