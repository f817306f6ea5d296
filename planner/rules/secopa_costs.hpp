#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::planner {

/// The costs that SeCoPa's formulas add up. All are functions of x, the (not necessarily whole)
/// elements of one partition, in one unit of time, milliseconds as published or seconds.
struct SecopaCosts {
  using Cost = std::function<double(double elements)>;

  /// What moving one partition costs, raw or compressed.
  struct Transfer {
    Cost gather;     ///< N−1 nodes to one
    Cost broadcast;  ///< one node to N−1
    Cost send;       ///< one step of a ring
  };

  Cost encode;
  Cost decode;
  Transfer raw;
  Transfer compressed;
};

/// The published constants, in milliseconds, for N >= 2 nodes. Gather and broadcast are published
/// for 4, 8 and 16; for others each coefficient divided by N−1 is interpolated linearly in N, and
/// beyond held.
SecopaCosts published_costs(std::uint32_t nodes);

/// What a reader must know of an algorithm that is planned with them; empty for built-in ones.
std::string diagnose_published_costs(const std::string& algorithm);

/// The same costs, in seconds, from a profile: gather and broadcast from its fan-in and fan-out
/// fits (between numbers of nodes, seconds divided by N−1 are interpolated linearly in N, and
/// beyond held), or from its link if it has none; sends from its link; encode and decode from the
/// algorithm's curves, and message sizes from the algorithm itself.
SecopaCosts measured_costs(const costs::Profile& profile, const casync::Algorithm& algorithm,
                           std::uint32_t nodes);

/// The profile that measured_costs() takes where nodes are joined by `link`: another link than the
/// profile's has no use for its fits of fan-in and fan-out, which are of its own network.
costs::Profile profile_on_link(costs::Profile profile, const costs::LinkCosts& link);

/// Says where gather and broadcast come from if that is not a fit for exactly N nodes: "gather and
/// broadcast for 12 nodes: interpolated between 8 and 16". Empty if it is. `fitted` has at least
/// one.
std::string describe_interpolation(std::uint32_t nodes, const std::vector<int>& fitted);

/// The numbers of nodes that have a fit, in increasing order: as published (4, 8, 16), and in a
/// profile.
std::vector<int> published_nodes();
std::vector<int> fitted_nodes(const costs::GatherCosts& costs);

}  // namespace hipress::planner
