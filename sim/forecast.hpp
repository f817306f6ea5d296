#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "costs/spread.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// Dependence of a predicted time on uncertain costs. Its parts are proportional to the costs of
/// host, links and compute. They are measured by slowing host and links by one standard deviation
/// each. The parts add up to the time, since doubling all costs doubles the time.
struct Response {
  double time_s = 0;
  double host_s = 0;      ///< kernels, and the CPU time of transfers
  double links_s = 0;     ///< bandwidths, overheads, latencies
  double compute_s = 0;   ///< all other time
  double floor_s = 0;     ///< lower bound: forward and backward, whatever communication costs
  double left_out_s = 0;  ///< computation that is excluded from the time
  /// Lower bound: time of the bytes alone on links whose rates are given. 0 if the rates are
  /// themselves uncertain.
  double wire_s = 0;
  /// Factor of the whole time, such as a ratio of numbers of steps, and the standard deviation of
  /// its logarithm.
  double factor = 1, factor_deviation = 0;
  bool operator==(const Response&) const = default;
};

/// 10th and 90th percentile, in seconds.
struct Interval {
  double p10_s = 0, p90_s = 0;
};

/// Largest ratio of p90 to p10 that still allows a decision.
inline constexpr double kWidestInterval = 3;
inline bool too_uncertain(const Interval& interval) {
  return interval.p90_s > kWidestInterval * interval.p10_s;
}

/// Response of the same time without `seconds` of its computation (forward and backward).
Response without_compute(const Response& response, double seconds);

// Each multiplies some times by `factor`: those of codecs and merges; of the CPU's part of
// transfers; of both; of links.
void slow_kernels(double factor, costs::Profile& profile);
void slow_transfers(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_host(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_links(double factor, costs::Profile& profile, costs::Cluster& cluster);

/// Makes everything free except bytes on links.
void leave_wires(costs::Profile& profile, costs::Cluster& cluster);

/// Maximum number of simulations for a response, besides the one for the time itself.
inline constexpr std::uint32_t kStressed = 3;

/// Time in seconds with these costs; none if it cannot be predicted.
using TimeOf = std::function<std::optional<double>(const costs::Profile&, const costs::Cluster&)>;

/// Response of a time `nominal_s` with this profile and cluster, of which `compute_s` is forward
/// and backward. Calls `time_s` up to kStressed times: with host work slower by a standard
/// deviation, with links slower by one, and with wires alone. The last is left out if the cluster's
/// link is the one that the profile was measured on. `jobs` above 1 makes the calls concurrent.
/// None if a call returns none.
std::optional<Response> respond(double nominal_s, double compute_s, const costs::Profile& profile,
                                const costs::Cluster& cluster, const TimeOf& time_s,
                                unsigned jobs = 1);

/// Response of a scenario with a known graph, iteration time and compute time. Throws as simulate()
/// does.
Response respond(const Scenario& scenario, const casync::TaskGraph& graph, double iteration_s,
                 double compute_s, unsigned jobs = 1);

/// Interval of a run's median iteration, over replicas that draw one factor each for host, links
/// and compute, and one for the model's error in communication. `iterations`: length of the run,
/// whose median then varies; 0: infinitely many.
Interval interval(const Response& response, const costs::Spread& spread, int iterations = 0);

/// A source of uncertainty of a time.
struct SpreadSource {
  std::string_view name;  ///< "host", "links", "compute", "model"
  std::string_view help;
  double deviation = 0;  ///< standard deviation of its factor's logarithm
  Interval alone;        ///< interval if no other source varies
  double share = 0;      ///< its part of the sum of squared widths; all 0 if nothing varies
};
/// Intervals with one source at a time; the model's error applies to communication only.
std::vector<SpreadSource> explain_interval(const Response& response, const costs::Spread& spread);

/// Saving of the first time over the second on the same machines. Both share the draws of host,
/// links and compute, but not of the model's error.
struct Saving {
  double p10 = 0, median = 0, p90 = 0;  ///< 1 − first/second; negative: it takes longer
  double probability = 0.5;             ///< probability that more than `margin` is saved
};
/// Saving of `first` over `second`. Equal responses without a margin have probability 0.5.
Saving saving(const Response& first, const Response& second, const costs::Spread& spread,
              double margin = 0);

}  // namespace hipress::sim
