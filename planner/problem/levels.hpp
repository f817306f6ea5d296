#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/problem/machines.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// The cluster as a library's collective sees it: every GPU is a node. The collective's time thus
/// does not depend on whether the cluster's nodes are GPUs or hosts. Unset if every GPU is a node
/// already, or if that cluster cannot be simulated.
std::optional<costs::Cluster> as_collectives_see(const Machines& machines);

/// A problem on the same machines with the GPUs described at the other level (costs/levels.hpp):
/// every GPU as a node if nodes have several GPUs, or every host as a node if each GPU is one.
class OtherLevels {
 public:
  /// Makes the problem with the GPUs at the other level. Null if there is no such level, or if
  /// plans for it cannot be simulated, in which case `diagnostics` says why. Problem::machines must
  /// be set. The problem's model and profile must outlive the result.
  static std::unique_ptr<const OtherLevels> of(const Problem& problem,
                                               std::vector<std::string>& diagnostics);

  /// Uses `machines`, with `cluster` instead of their own cluster.
  OtherLevels(const Problem& problem, const Machines& machines, costs::Cluster cluster);
  OtherLevels(const OtherLevels&) = delete;
  OtherLevels& operator=(const OtherLevels&) = delete;

  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

/// The problem with every GPU as a node; sharded schedules require it.
class GpuProblem {
 public:
  /// Throws io::InputError if a cluster with every GPU as a node cannot describe the machines.
  /// Everything that `problem` refers to must outlive the object.
  explicit GpuProblem(const Problem& problem);
  GpuProblem(const GpuProblem&) = delete;
  GpuProblem& operator=(const GpuProblem&) = delete;
  const Problem& problem() const { return problem_; }

 private:
  Machines machines_;
  Problem problem_;
};

}  // namespace hipress::planner
