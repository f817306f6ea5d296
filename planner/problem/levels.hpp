#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/problem/machines.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// The cluster as a library's collective sees it: every GPU is a node. A job's collective therefore
/// takes the same time however the job's cluster is written. None where every GPU is a node
/// already, or where that cluster cannot be simulated.
std::optional<costs::Cluster> as_collectives_see(const Machines& machines);

/// A problem on the same machines with their GPUs at another level (costs/levels.hpp): where nodes
/// sum gradients over their GPUs first, every GPU as a node, and the other way round.
class OtherLevels {
 public:
  /// Null where there is no other level, or where plans for it cannot be simulated; `diagnostics`
  /// then says why. Problem::machines must be given. The problem's model and profile must outlive
  /// the result.
  static std::unique_ptr<const OtherLevels> of(const Problem& problem,
                                               std::vector<std::string>& diagnostics);

  /// On that cluster, all else as `machines` are.
  OtherLevels(const Problem& problem, const Machines& machines, costs::Cluster cluster);
  OtherLevels(const OtherLevels&) = delete;
  OtherLevels& operator=(const OtherLevels&) = delete;

  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

/// The problem with every GPU as a node of its own, which sharded schedules need.
class GpuProblem {
 public:
  /// io::InputError where the machines cannot be described that way. What `problem` refers to must
  /// outlive the object.
  explicit GpuProblem(const Problem& problem);
  GpuProblem(const GpuProblem&) = delete;
  GpuProblem& operator=(const GpuProblem&) = delete;
  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

}  // namespace hipress::planner
