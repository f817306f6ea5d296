#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/machines.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {

// GPUs can be nodes of their own, or share nodes (costs/levels.hpp). A plan is simulated at the
// level that has as many nodes as the plan.

/// Simulated iteration time in seconds. The graph is folded where that does not change the time.
/// io::InputError if the profile lacks an algorithm of the plan.
double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines,
                             sim::TransferOrder order = sim::TransferOrder::kReady);

/// How a plan is simulated where its graph may have too many tasks for memory or time.
struct AffordableScenario {
  sim::Scenario scenario;
  sim::Fold fold = sim::Fold::kExactly;
  bool folds = false;           ///< one node stands for all
  double tasks = 0;             ///< as simulated_tasks()
  bool possible = true;         ///< false: not even folded
  std::string diagnostic = {};  ///< what was given up, or why it is impossible; mostly empty
};
AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines,
                                       sim::TransferOrder order = sim::TransferOrder::kReady);

/// About how many tasks affordable_iteration() simulates: the whole graph's, or those of one node
/// if it folds the graph.
double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines);

/// A time that large clusters can afford, and what was given up for it.
struct AffordableTime {
  std::optional<double> iteration_s;  ///< none: too large to be simulated even folded
  std::string diagnostic = {};        ///< what was given up; empty: nothing was
};

/// The graph of one plan. Simulations of the plan share it if their machines differ in nothing but
/// costs. Threads may share one.
class SharedGraph {
 public:
  /// The graph, which the first call expands. Throws as sim::expand().
  const casync::TaskGraph& of(const sim::Scenario& scenario, sim::Fold fold);

 private:
  std::once_flag once_;
  std::optional<sim::ExpandedGraph> expanded_;
};

/// The iteration time of a plan whose graph may have too many tasks for memory or time. Where it
/// does, one node stands for all (the graph is folded), every slice is as long as the longest, and
/// the network is `port` if `fair` would have too many flows, or bursts, which cannot be folded.
///
/// There is no time where nodes do different things, where even one node has too many tasks, and
/// where Machines::budget leaves too little time. `graph` is the plan's; null: one is made.
AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& machines,
                                    sim::TransferOrder order = sim::TransferOrder::kReady,
                                    SharedGraph* graph = nullptr);

}  // namespace hipress::planner
