#pragma once

#include <span>
#include <string_view>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"

/// Plans in which every gradient is decided alone, by a rule: nothing is simulated for them.
namespace hipress::planner {

/// A plan that needs no budget, which every searched plan is compared with. Adding one is one row.
struct BaselineRow {
  std::string_view name;
  std::string_view help;
  /// Without decisions: it makes no sense on these machines, or is what another row makes.
  casync::Plan (*make)(const Problem& problem);
  bool compresses = true;  ///< else a topology that sends_raw_alone() can carry it too
  /// That it has whatever the problem's is; empty: the problem's.
  std::string_view topology = {};
  /// As `make` decides, with the bulk groups that suit it best.
  bool grouped = false;
  /// That it compresses with whatever the problem's are; empty: with none but these.
  std::string_view algorithm = {};
  /// `make` simulates many plans.
  bool searches = false;
  /// By SeCoPa's formulas: only topologies with formulas can carry it (secopa_knows()).
  bool by_formulas = false;
  JobKind kind = JobKind::kAveraging;  ///< of jobs that it is for
  /// "FSDP2 by default": in sentences, of what a framework runs as it is; empty: none does.
  std::string_view title = {};
  /// Jobs run it unless they say otherwise; of several, the last that makes a plan.
  bool is_default = false;

  /// A library's own, whose nodes are GPUs: as_collectives_see().
  bool is_collective() const { return !topology.empty(); }
  /// A library's collectives serve all kinds of jobs.
  bool is_for(JobKind job) const {
    return kind == job || (kind == JobKind::kAveraging && is_collective());
  }
};

/// none, fp16, all, threshold_262144, secopa, each gradient alone: those that nothing is simulated
/// for, so that they are in every option set.
std::span<const BaselineRow> baselines();

/// What those rows make, of any other row that begins with the same.
namespace rules {
casync::Plan none(const Problem& problem);
casync::Plan fp16(const Problem& problem);
casync::Plan all(const Problem& problem);
casync::Plan threshold(const Problem& problem);  ///< of 262144 elements
casync::Plan secopa(const Problem& problem);
}  // namespace rules

}  // namespace hipress::planner
