#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/machines.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {

// A cluster can describe GPUs as nodes, or as parts of nodes (costs/levels.hpp). A plan is
// simulated with the description that has its number of nodes.

/// Simulated iteration time in seconds. Folds the graph if that does not change the time. Throws
/// io::InputError if the profile lacks an algorithm of the plan.
double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines,
                             sim::TransferOrder order = sim::TransferOrder::kReady);

/// Simulation of a plan, simplified if its graph has too many tasks for memory or time.
struct AffordableScenario {
  sim::Scenario scenario;
  sim::Fold fold = sim::Fold::kExactly;
  bool folds = false;    ///< one node is simulated for all
  double tasks = 0;      ///< simulated_tasks()
  bool possible = true;  ///< false: too large even if folded
  /// Approximations, or the reason why it is impossible; mostly empty.
  std::string diagnostic = {};
};
AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines,
                                       sim::TransferOrder order = sim::TransferOrder::kReady);

/// Approximate number of tasks that affordable_iteration() simulates: of one node, if it folds.
double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines);

/// An iteration time, with the approximations that make it affordable for large clusters.
struct AffordableTime {
  std::optional<double> iteration_s;  ///< unset: too large even if folded
  std::string diagnostic = {};        ///< approximations made; mostly empty
};

/// Task graph of a plan, shared by simulations on machines with different costs. Thread-safe.
class SharedGraph {
 public:
  /// Returns the graph; the first call expands it. Throws as sim::expand() does.
  const casync::TaskGraph& of(const sim::Scenario& scenario, sim::Fold fold);

 private:
  std::once_flag once_;
  std::optional<sim::ExpandedGraph> expanded_;
};

/// Iteration time of a plan, approximated if its graph has too many tasks for memory or time: one
/// node then stands for all (the graph is folded), and every slice is as long as the longest.
/// Network `port` replaces `fair` if there are too many flows, or bursts, which prevent folding.
///
/// Unset if nodes behave differently, if even one node has too many tasks, or if Machines::budget
/// leaves too little time. `graph` is the plan's, to be reused; null: it is made.
AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& machines,
                                    sim::TransferOrder order = sim::TransferOrder::kReady,
                                    SharedGraph* graph = nullptr);

}  // namespace hipress::planner
