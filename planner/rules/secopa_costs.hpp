#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::planner {

/// Costs in SeCoPa's formulas. All are functions of x, the (possibly fractional) elements of one
/// partition, in one unit of time: milliseconds as published, or seconds.
struct SecopaCosts {
  using Cost = std::function<double(double elements)>;

  /// Costs of moving one partition, raw or compressed.
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

/// Published constants, in milliseconds, for N >= 2 nodes. Gather and broadcast are published for
/// 4, 8 and 16 nodes. In between, each coefficient divided by N−1 is interpolated linearly in N;
/// beyond, it is held constant.
SecopaCosts published_costs(std::uint32_t nodes);

/// Diagnostic for an algorithm planned with the published costs; empty for built-in ones.
std::string diagnose_published_costs(const std::string& algorithm);

/// Costs in seconds, from a profile. Gather and broadcast come from its fan-in and fan-out fits
/// (between fitted numbers of nodes, seconds divided by N−1 are interpolated linearly in N; beyond,
/// held constant), or from its link without fits. Sends come from its link, encode and decode from
/// the algorithm's curves, message sizes from the algorithm itself.
SecopaCosts measured_costs(const costs::Profile& profile, const casync::Algorithm& algorithm,
                           std::uint32_t nodes);

/// Profile for measured_costs() on nodes joined by `link`. If that is not the profile's own link,
/// the fits of fan-in and fan-out are dropped, since they are of its own network.
costs::Profile profile_on_link(costs::Profile profile, const costs::LinkCosts& link);

/// Describes the source of gather and broadcast if it is not a fit for exactly N nodes: "gather and
/// broadcast for 12 nodes: interpolated between 8 and 16"; else empty. `fitted` must not be empty.
std::string describe_interpolation(std::uint32_t nodes, const std::vector<int>& fitted);

/// Numbers of nodes with a fit, ascending: as published (4, 8, 16), and in a profile.
std::vector<int> published_nodes();
std::vector<int> fitted_nodes(const costs::GatherCosts& costs);

}  // namespace hipress::planner
