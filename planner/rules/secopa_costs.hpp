#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "casync/plan.hpp"
#include "costs/profile.hpp"

namespace hipress::planner {

/// Costs in SeCoPa's formulas, as functions of x, the possibly fractional number of elements of a
/// partition. All have one unit of time: milliseconds as published, or seconds.
struct SecopaCosts {
  using Cost = std::function<double(double elements)>;

  /// Costs of moving one partition, raw or compressed.
  struct Transfer {
    Cost gather;     ///< from N−1 nodes to one
    Cost broadcast;  ///< from one node to N−1
    Cost send;       ///< one step of a ring
  };

  Cost encode;
  Cost decode;
  Transfer raw;
  Transfer compressed;
};

/// Published costs in milliseconds, for N >= 2 nodes. Gather and broadcast are published for 4, 8
/// and 16 nodes. Between these, each coefficient divided by N−1 is interpolated linearly in N;
/// outside, it is constant.
SecopaCosts published_costs(std::uint32_t nodes);

/// Diagnostic for a program planned with the published costs; empty for built-in algorithms.
std::string diagnose_published_costs(const std::string& algorithm);

/// Costs in seconds, from a profile. Gather and broadcast come from its fan-in and fan-out fits:
/// between fitted numbers of nodes, seconds divided by N−1 are interpolated linearly in N; outside,
/// they are constant. Without fits, they come from the profile's link. Sends come from the link,
/// encode and decode from the algorithm's curves, message sizes from the algorithm itself.
SecopaCosts measured_costs(const costs::Profile& profile, const casync::Algorithm& algorithm,
                           std::uint32_t nodes);

/// Profile for measured_costs() on nodes joined by `link`. If this is not the profile's own link,
/// the fits of fan-in and fan-out are dropped, since they were measured on another network.
costs::Profile profile_on_link(costs::Profile profile, const costs::LinkCosts& link);

/// Source of gather and broadcast if there is no fit for exactly N nodes: "gather and broadcast for
/// 12 nodes: interpolated between 8 and 16"; otherwise empty. `fitted` must not be empty.
std::string describe_interpolation(std::uint32_t nodes, const std::vector<int>& fitted);

/// Numbers of nodes with a fit, ascending: the published ones (4, 8, 16), and those of a profile.
std::vector<int> published_nodes();
std::vector<int> fitted_nodes(const costs::GatherCosts& costs);

}  // namespace hipress::planner
