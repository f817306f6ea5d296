#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "casync/plan.hpp"
#include "models/model.hpp"
#include "planner/problem/machines.hpp"
#include "sim/folding.hpp"

namespace hipress::planner {

// Of machines whose GPUs can be at two levels, a plan has the one with as many nodes as it is for.

/// Simulated iteration time in seconds, of a folded graph where that changes nothing.
/// io::InputError if the profile lacks an algorithm of the plan.
double simulated_iteration_s(const models::Model& model, const casync::Plan& plan,
                             const Machines& machines,
                             sim::TransferOrder order = sim::TransferOrder::kReady);

/// How a plan is simulated where its graph may have too many tasks for memory or time.
struct AffordableScenario {
  sim::Scenario scenario;
  sim::Fold fold = sim::Fold::kExactly;
  bool possible = true;         ///< false: not even folded
  std::string diagnostic = {};  ///< what was given up, or why it is impossible; mostly empty
};
AffordableScenario affordable_scenario(const models::Model& model, const casync::Plan& plan,
                                       const Machines& machines,
                                       sim::TransferOrder order = sim::TransferOrder::kReady);

/// About how many of the whole graph's tasks affordable_iteration() simulates.
double simulated_tasks(const models::Model& model, const casync::Plan& plan,
                       const Machines& machines);

/// A time that large clusters can afford, and what was given up for it.
struct AffordableTime {
  std::optional<double> iteration_s;  ///< none: not even so
  std::string diagnostic = {};        ///< empty: it is simulated_iteration_s()
};

/// The graph of one plan, for simulations of it on machines that differ in their costs alone.
/// Threads may share one.
class SharedGraph {
 public:
  /// Expanded at the first call. Throws as sim::expand().
  const casync::TaskGraph& of(const sim::Scenario& scenario, sim::Fold fold);

 private:
  std::once_flag once_;
  std::optional<sim::ExpandedGraph> expanded_;
};

/// The same where a graph has so many tasks that it does not fit in memory or time: folded with all
/// slices as long as the longest, and on network port where flows would be too many or have bursts,
/// which cannot be folded. None for plans whose nodes do different things, for those of which even
/// one node has too many tasks, and where Machines::budget leaves too little time. `graph` is the
/// plan's; null: it is made for this simulation.
AffordableTime affordable_iteration(const models::Model& model, const casync::Plan& plan,
                                    const Machines& machines,
                                    sim::TransferOrder order = sim::TransferOrder::kReady,
                                    SharedGraph* graph = nullptr);

}  // namespace hipress::planner
