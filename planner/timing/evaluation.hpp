#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/machines.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {

// GPUs can be nodes, or share nodes (costs/levels.hpp). A plan is simulated at the level with the
// plan's number of nodes.

/// Simulated iteration time in seconds. The graph is folded if that does not change the time.
/// Throws io::InputError if the profile lacks an algorithm of the plan.
double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines,
                             sim::TransferOrder order = sim::TransferOrder::kReady);

/// Simulation of a plan whose graph may have too many tasks for memory or time.
struct AffordableScenario {
  sim::Scenario scenario;
  sim::Fold fold = sim::Fold::kExactly;
  bool folds = false;           ///< one node stands for all
  double tasks = 0;             ///< simulated_tasks()
  bool possible = true;         ///< false: not even folded
  std::string diagnostic = {};  ///< approximations, or why it is impossible; mostly empty
};
AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines,
                                       sim::TransferOrder order = sim::TransferOrder::kReady);

/// Approximate number of tasks that affordable_iteration() simulates: of the whole graph, or of one
/// node if the graph is folded.
double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines);

/// Time that is affordable for large clusters, with its approximations.
struct AffordableTime {
  std::optional<double> iteration_s;  ///< none: too large even folded
  std::string diagnostic = {};        ///< approximations made; empty: none
};

/// Task graph of one plan, shared by simulations of the plan on machines that differ only in costs.
/// Thread-safe.
class SharedGraph {
 public:
  /// Returns the graph; the first call expands it. Throws as sim::expand() does.
  const casync::TaskGraph& of(const sim::Scenario& scenario, sim::Fold fold);

 private:
  std::once_flag once_;
  std::optional<sim::ExpandedGraph> expanded_;
};

/// Iteration time of a plan whose graph may have too many tasks for memory or time. If it has, one
/// node stands for all (the graph is folded), every slice is as long as the longest, and network
/// `port` replaces `fair` if there are too many flows, or bursts, which cannot be folded.
///
/// None if nodes behave differently, if even one node has too many tasks, or if Machines::budget
/// leaves too little time. `graph` is the plan's; null: one is made.
AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& machines,
                                    sim::TransferOrder order = sim::TransferOrder::kReady,
                                    SharedGraph* graph = nullptr);

}  // namespace hipress::planner
