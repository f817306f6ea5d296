#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "costs/spread.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// How a predicted time depends on what is uncertain: parts that grow in proportion to the costs of
/// host, links and compute, at the rates seen when these are slower by a standard deviation. The
/// parts add up to the time, since everything twice as slow takes twice as long.
struct Response {
  double time_s = 0;
  double host_s = 0;      ///< kernels, and the CPU time of transfers
  double links_s = 0;     ///< bandwidths, overheads, latencies
  double compute_s = 0;   ///< the rest
  double floor_s = 0;     ///< forward and backward, which no communication makes shorter
  double left_out_s = 0;  ///< computation that is not counted
  /// Lower bound: time of the bytes alone on links whose rates are given. 0 if the rates are
  /// themselves uncertain.
  double wire_s = 0;
  /// Factor of the whole time, as of steps over a rival's, and the standard deviation of its
  /// logarithm.
  double factor = 1, factor_deviation = 0;
  bool operator==(const Response&) const = default;
};

/// 10th and 90th percentile, in seconds.
struct Interval {
  double p10_s = 0, p90_s = 0;
};

/// Largest ratio of an interval's ends by which to decide. Wider intervals say too little.
inline constexpr double kWidestInterval = 3;
inline bool too_uncertain(const Interval& interval) {
  return interval.p90_s > kWidestInterval * interval.p10_s;
}

/// Of what takes `seconds` less because it leaves out so much computation (forward, backward).
Response without_compute(const Response& response, double seconds);

// Each scales the time of something by `factor`: codecs and merges; the CPU's part of transfers;
// both of them; links.
void slow_kernels(double factor, costs::Profile& profile);
void slow_transfers(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_host(double factor, costs::Profile& profile, costs::Cluster& cluster);
void slow_links(double factor, costs::Profile& profile, costs::Cluster& cluster);

/// Makes everything free but bytes on links.
void leave_wires(costs::Profile& profile, costs::Cluster& cluster);

/// Simulations for a response besides that of its time.
inline constexpr std::uint32_t kStressed = 3;

/// Seconds that something takes with these costs; none: it cannot be told.
using TimeOf = std::function<std::optional<double>(const costs::Profile&, const costs::Cluster&)>;

/// The response of something that takes `nominal_s` with this profile and cluster, `compute_s` of
/// it for forward and backward. Makes up to kStressed more calls of `time_s`: with host work, and
/// with links, slower by a standard deviation, and with wires alone unless the cluster's link is
/// the one that the profile was measured on. With more than one of `jobs` they run at the same
/// time. None if one of them gives none.
std::optional<Response> respond(double nominal_s, double compute_s, const costs::Profile& profile,
                                const costs::Cluster& cluster, const TimeOf& time_s,
                                unsigned jobs = 1);

/// The response of a scenario whose graph, iteration time and compute time are known. Throws as
/// simulate().
Response respond(const Scenario& scenario, const casync::TaskGraph& graph, double iteration_s,
                 double compute_s, unsigned jobs = 1);

/// The interval of a run's median iteration, over replicas that draw one factor each for host,
/// links and compute, and one for the model's error in communication. A run of so many `iterations`
/// adds the variation of its median; 0: infinitely many.
Interval interval(const Response& response, const costs::Spread& spread, int iterations = 0);

/// A source of what is not known of a time.
struct SpreadSource {
  std::string_view name;  ///< "host", "links", "compute", "model"
  std::string_view help;
  double deviation = 0;  ///< of the logarithm of its factor
  Interval alone;        ///< where nothing else varies
  double share = 0;      ///< of the squared widths of all; they sum up to 1, or are all 0
};
/// By the sources one at a time; the model's error is that of what is communication.
std::vector<SpreadSource> explain_interval(const Response& response, const costs::Spread& spread);

/// What the first saves of the second's time on the same machines: they share the draws of host,
/// links and compute, but not the model's error.
struct Saving {
  double p10 = 0, median = 0, p90 = 0;  ///< 1 − first/second; negative: it takes longer
  double probability = 0.5;  ///< that it takes less than 1 − `margin` of the second's time
};
/// Equal responses without a margin have probability 0.5.
Saving saving(const Response& first, const Response& second, const costs::Spread& spread,
              double margin = 0);

}  // namespace hipress::sim
