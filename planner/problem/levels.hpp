#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/problem/machines.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// The cluster as a library's collective sees it: every GPU is a node. The collective's time
/// therefore does not depend on the level at which a job describes its cluster. None if every GPU
/// is a node already, or if that cluster cannot be simulated.
std::optional<costs::Cluster> as_collectives_see(const Machines& machines);

/// A problem on the same machines with their GPUs at the other level (costs/levels.hpp): every GPU
/// a node instead of nodes that sum gradients over their GPUs first, or the reverse.
class OtherLevels {
 public:
  /// The problem with the GPUs at the other level. Null if there is no such level, or if plans for
  /// it cannot be simulated; `diagnostics` then says why. Problem::machines must be given. The
  /// problem's model and profile must outlive the result.
  static std::unique_ptr<const OtherLevels> of(const Problem& problem,
                                               std::vector<std::string>& diagnostics);

  /// Replaces the cluster of `machines` by `cluster`.
  OtherLevels(const Problem& problem, const Machines& machines, costs::Cluster cluster);
  OtherLevels(const OtherLevels&) = delete;
  OtherLevels& operator=(const OtherLevels&) = delete;

  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

/// The problem with every GPU as a node, as sharded schedules require.
class GpuProblem {
 public:
  /// Throws io::InputError if the machines cannot be described that way. Everything that `problem`
  /// refers to must outlive the object.
  explicit GpuProblem(const Problem& problem);
  GpuProblem(const GpuProblem&) = delete;
  GpuProblem& operator=(const GpuProblem&) = delete;
  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

}  // namespace hipress::planner
