#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "casync/topology.hpp"
#include "models/model.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/evaluation.hpp"

namespace hipress::planner {

/// Effort limits of lower_bound().
struct BoundLimits {
  /// Number of nodes of the branch and bound over the options of large gradients; more: a better
  /// bound, after more time. 0: only the linear program. Since it is a count and not a time, the
  /// bound is the same on every machine.
  std::size_t branch_nodes = 0;
  /// Iteration time of a known plan, in seconds; a bound that reaches it is final. 0: unknown.
  double known_s = 0;
  /// Polled if set; true ends the search with the bound so far, which then depends on timing.
  std::function<bool()> stop = {};
};

/// A lower bound on the simulated iteration time of all plans of an option set.
struct Bound {
  double seconds = 0;
  /// Starting point for a search of plans: the option with the largest weight for each gradient, in
  /// the linear program of the scheme with the lowest bound.
  std::vector<std::uint16_t> options;
};

/// The first topology among the schemes' that has no bound terms; null: all have them.
const casync::Topology* topology_without_bound(const Choices& choices);

/// Lower bound on the simulated iteration time of all plans of `choices`, on these machines and
/// their network; docs/bound.md has the proof. Deterministic unless BoundLimits::stop ends it.
/// Throws io::InputError if the profile lacks an algorithm, or a topology has no bound terms.
Bound lower_bound(const models::Model& model, const Machines& machines, const Choices& choices,
                  const BoundLimits& limits = {});

/// Largest possible excess of a time over the best plan's, relative to the bound: 0.01 is 1 %.
inline double gap(double found_s, double bound_s) {
  return bound_s > 0 ? (found_s - bound_s) / bound_s : 0;
}

}  // namespace hipress::planner
