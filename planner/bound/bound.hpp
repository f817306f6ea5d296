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
  /// Nodes of the branch and bound over the options of large gradients; more: a better bound,
  /// later. 0: only the linear program. A count, not a time, so that the bound is the same
  /// everywhere.
  std::size_t branch_nodes = 0;
  /// Iteration time of a known plan; the search for the bound stops there. 0: unknown.
  double known_s = 0;
  /// Polled: true ends the search with the bound so far, which then depends on the timing. May be
  /// empty.
  std::function<bool()> stop = {};
};

/// A lower bound on the simulated iteration time of all plans of an option set.
struct Bound {
  double seconds = 0;
  /// Starting point for a search: the most used option of each gradient in the linear program of
  /// the scheme with the lowest bound.
  std::vector<std::uint16_t> options;
};

/// The first of the schemes' topologies that has no bound terms; null: all have them.
const casync::Topology* topology_without_bound(const Choices& choices);

/// Lower bound on the simulated iteration time of all plans of `choices` on these machines, with
/// their network. docs/bound.md has the proof. Deterministic. Throws io::InputError if the profile
/// lacks an algorithm, or if topology_without_bound() finds one.
Bound lower_bound(const models::Model& model, const Machines& machines, const Choices& choices,
                  const BoundLimits& limits = {});

/// Largest possible relative excess of a plan that takes `found_s` over the best plan: 0.01 is 1 %.
inline double gap(double found_s, double bound_s) {
  return bound_s > 0 ? (found_s - bound_s) / bound_s : 0;
}

}  // namespace hipress::planner
