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

/// How much is done for a bound.
struct BoundLimits {
  /// Nodes of the branch and bound over the options of large gradients; more: a better bound,
  /// later. 0: the linear program alone. Counted, not timed, so that the bound is the same
  /// everywhere.
  std::size_t branch_nodes = 0;
  /// Iteration time of a known plan: the bound need not be looked for above it. 0: none.
  double known_s = 0;
  /// Asked now and then: true ends the search with the bound so far, which then depends on when.
  /// May be empty.
  std::function<bool()> stop = {};
};

/// A lower bound on the simulated iteration time of all plans of an option set.
struct Bound {
  double seconds = 0;
  /// A plan that the bound's linear program suggests, for a search to start from: the scheme that
  /// allows the least, and per gradient the option that it takes most of.
  std::size_t scheme = 0;
  std::vector<std::uint16_t> options;
};

/// The first topology of the schemes that says no terms for a bound; null: there is a bound.
const casync::Topology* topology_without_bound(const Choices& choices);

/// No plan of `choices` is simulated faster on these machines, with their network. docs/bound.md
/// has the proof. The same inputs give the same bound. io::InputError if the profile lacks an
/// algorithm, and where topology_without_bound().
Bound lower_bound(const models::Model& model, const Machines& machines, const Choices& choices,
                  const BoundLimits& limits = {});

/// How far from the best possible plan one that takes `found_s` can be at most: 0.01 is 1 %.
inline double gap(double found_s, double bound_s) {
  return bound_s > 0 ? (found_s - bound_s) / bound_s : 0;
}

}  // namespace hipress::planner
