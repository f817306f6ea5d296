#include "planner/schedules/required_bandwidth.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "casync/task_graph.hpp"
#include "costs/assumed_spread.hpp"
#include "sim/compute_utilisation.hpp"
#include "sim/folding.hpp"
#include "sim/forecast.hpp"

namespace hipress::planner {
namespace {

constexpr double kLeast = 125;     // bytes per second: 1 kbit/s
constexpr double kMost = 1.25e14;  // 1 Pbit/s
constexpr double kBandwidthPrecision = 1e-3;
constexpr double kPrecisionOfEnds = 1e-2;  // relative, for the ends of an interval

/// 10th percentile, median and 90th percentile.
enum class Speed : std::uint8_t { kFast, kNominal, kSlow };

/// Share of computation as a function of link bandwidth.
class Utilisation {
 public:
  explicit Utilisation(const sim::Scenario& scenario)
      : scenario_(scenario),
        spread_(costs::spread_of(scenario.profile)),
        graph_(sim::expand(scenario, folding(scenario)).graph),
        steps_(sim::steps_per_period(scenario)) {}

  double at(double bytes_per_s, Speed speed) {
    scenario_.cluster.link.set_bandwidth(bytes_per_s);
    const sim::Result result = sim::simulate(scenario_, graph_, sim::Timelines::kRecorded);
    const sim::SteadyState steady =
        sim::steady_state(graph_, result.timeline, scenario_.iterations);
    const double compute_s = casync::to_seconds(steady.compute);
    double exposed_s = casync::to_seconds(steady.period) - compute_s;
    if (speed != Speed::kNominal) {
      const sim::Interval range = exposed_in(steady);
      exposed_s = speed == Speed::kFast ? range.p10_s : range.p90_s;
    }
    return sim::share_of_compute(compute_s, exposed_s);
  }

 private:
  /// Folds even if slices differ by some elements; one node then stands for all.
  static sim::Fold folding(const sim::Scenario& scenario) {
    const bool possible = sim::foldability(scenario).kind != casync::Foldability::kImpossible;
    return possible ? sim::Fold::kAlways : sim::Fold::kNever;
  }

  sim::Interval exposed_in(const sim::SteadyState& steady) const {
    const double period_s = casync::to_seconds(steady.period) / steps_;
    const double compute_s = casync::to_seconds(steady.compute) / steps_;
    const sim::Response response = sim::respond(scenario_, graph_, period_s, compute_s);
    const sim::Interval range = sim::interval(sim::without_compute(response, compute_s), spread_);
    return {range.p10_s * steps_, range.p90_s * steps_};
  }

  sim::Scenario scenario_;
  costs::Spread spread_;
  casync::TaskGraph graph_;
  double steps_;
};

/// Lowest bandwidth from kLeast to kMost with at least that utilisation; unset if even kMost is too
/// low. The utilisation must not fall when the bandwidth rises.
std::optional<double> least(Utilisation& utilisation, double wanted, Speed speed, double guess) {
  const auto reaches = [&](double bandwidth) { return utilisation.at(bandwidth, speed) >= wanted; };
  // Ends of an interval are close to the nominal value, which is their `guess`, so steps are small.
  const bool nominal = speed == Speed::kNominal;
  const double step = nominal ? 4 : 1.5;
  double low = guess, high = guess;
  if (reaches(guess)) {
    do {
      if (low == kLeast) return low;
      high = low;
      low = std::max(kLeast, low / step);
    } while (reaches(low));
  } else {
    do {
      if (high == kMost) return std::nullopt;
      low = high;
      high = std::min(kMost, high * step);
    } while (!reaches(high));
  }
  const double precision = nominal ? kBandwidthPrecision : kPrecisionOfEnds;
  while (high > low * (1 + precision)) {
    const double middle = std::sqrt(low * high);
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

/// Names the times that more bandwidth does not shorten.
std::string rest(const costs::Cluster& cluster) {
  std::string text = "latency, overheads of messages and codecs";
  if (cluster.gpus_per_node > 1) {
    text += cluster.site ? ", means within sites" : ", means within nodes";
  }
  if (!cluster.slow_links.empty()) {
    text += cluster.site ? ", pairs of sites with a bandwidth of their own" : ", slow links";
  }
  return text;
}

std::optional<double> bits(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? std::optional(8 * *bytes_per_s) : std::nullopt;
}

}  // namespace

std::vector<RequiredBandwidth> required_bandwidths(const sim::Scenario& scenario,
                                                   std::span<const double> utilizations) {
  Utilisation utilisation(scenario);
  std::vector<RequiredBandwidth> rows;
  double guess = scenario.cluster.link.bandwidth;
  for (const double wanted : utilizations) {
    RequiredBandwidth row{
        .utilization = wanted, .bits_per_s = {}, .bits_per_s_p10 = {}, .bits_per_s_p90 = {}};
    const std::optional<double> found = least(utilisation, wanted, Speed::kNominal, guess);
    row.bits_per_s = bits(found);
    if (found) {
      guess = *found;
      row.bits_per_s_p10 = bits(least(utilisation, wanted, Speed::kFast, *found));
      row.bits_per_s_p90 = bits(least(utilisation, wanted, Speed::kSlow, *found));
    } else {
      row.reason =
          fmt::format("{:.1f} % at any bandwidth: the rest is {}",
                      100 * utilisation.at(kMost, Speed::kNominal), rest(scenario.cluster));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace hipress::planner
