#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "costs/spread.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// Dependence of a predicted time on uncertain costs. host_s, links_s and compute_s are the parts
/// of the time that are proportional to the costs of host, links and compute. They add up to the
/// time, since doubling all costs doubles it. The first two are found by slowing host and links by
/// one standard deviation each; compute_s is the rest.
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

// Multiply times by `factor`: slow_kernels() those of codecs and merges, slow_transfers() the CPU's
// part of transfers, slow_host() both of these, and slow_links() those of links.
void slow_kernels(double factor, costs::Profile& profile);
void slow_transfers(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_host(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_links(double factor, costs::Profile& profile, costs::Cluster& cluster);

/// Sets every cost to 0, except the time of bytes on links.
void leave_wires(costs::Profile& profile, costs::Cluster& cluster);

/// Maximum number of simulations for a response, besides that of the nominal time.
inline constexpr std::uint32_t kStressed = 3;

/// Time in seconds with these costs; nullopt if it cannot be predicted.
using TimeOf = std::function<std::optional<double>(const costs::Profile&, const costs::Cluster&)>;

/// Response of a step that takes `nominal_s` with this profile and cluster, `compute_s` of it
/// forward and backward. Calls `time_s` up to kStressed times: with host work slower by a standard
/// deviation, with links slower by one, and, if links have given rates, with nothing but bytes on
/// links. `jobs` above 1 makes the calls concurrent. Returns nullopt if a call does.
std::optional<Response> respond(double nominal_s, double compute_s, const costs::Profile& profile,
                                const costs::Cluster& cluster, const TimeOf& time_s,
                                unsigned jobs = 1);

/// Response of a scenario with a known graph, iteration time and compute time. Throws as simulate()
/// does.
Response respond(const Scenario& scenario, const casync::TaskGraph& graph, double iteration_s,
                 double compute_s, unsigned jobs = 1);

/// Interval of a run's median iteration. Each replica draws one factor for host, links and compute,
/// and one for the simulator's error in communication. `iterations` is the length of the run: the
/// shorter it is, the more its median varies; 0 means infinitely long.
Interval interval(const Response& response, const costs::Spread& spread, int iterations = 0);

/// A source of uncertainty of a time.
struct SpreadSource {
  std::string_view name;  ///< "host", "links", "compute", "model"
  std::string_view help;
  double deviation = 0;  ///< standard deviation of its factor's logarithm
  Interval alone;        ///< interval if only this source varies
  double share = 0;      ///< squared width of `alone`, divided by the sum of these squares over all
                         ///< sources; 0 if nothing varies
};
/// Intervals if only one source varies, for each source.
std::vector<SpreadSource> explain_interval(const Response& response, const costs::Spread& spread);

/// Share of time that a plan saves over another on the same machines. Both times share the draws
/// for host, links and compute, but not for the simulator's error.
struct Saving {
  double p10 = 0, median = 0, p90 = 0;  ///< 1 − first/second; negative: the first takes longer
  double probability = 0.5;             ///< probability of saving more than `margin`
};
/// Saving of `first` over `second`. Equal responses without a margin have probability 0.5.
Saving saving(const Response& first, const Response& second, const costs::Spread& spread,
              double margin = 0);

}  // namespace hipress::sim
