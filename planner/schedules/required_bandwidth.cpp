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

constexpr double kLeast = 125;     // bytes a second: a kilobit
constexpr double kMost = 1.25e14;  // a petabit
constexpr double kPrecision = 1e-3;
constexpr double kPrecisionOfEnds = 1e-2;  // of an interval

/// 10th and 90th percentile, and what is between.
enum class Machines : std::uint8_t { kFast, kNominal, kSlow };

/// The share of computation, as a function of the links' bandwidth.
class Utilisation {
 public:
  explicit Utilisation(const sim::Scenario& scenario)
      : scenario_(scenario),
        spread_(costs::spread_of(scenario.profile)),
        graph_(sim::expand(scenario, folding(scenario)).graph),
        steps_(sim::steps_per_period(scenario)) {}

  double at(double bytes_per_s, Machines machines) {
    scenario_.cluster.link.set_bandwidth(bytes_per_s);
    const sim::Result result = sim::simulate(scenario_, graph_, sim::Timelines::kRecorded);
    const sim::SteadyState steady =
        sim::steady_state(graph_, result.timeline, scenario_.iterations);
    const double compute_s = casync::to_seconds(steady.compute);
    double exposed_s = casync::to_seconds(steady.period) - compute_s;
    if (machines != Machines::kNominal) {
      const sim::Interval range = exposed_in(steady);
      exposed_s = machines == Machines::kFast ? range.p10_s : range.p90_s;
    }
    return sim::share_of_compute(compute_s, exposed_s);
  }

 private:
  /// Slices that differ by some elements are taken to be alike: one node is simulated for all.
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

/// The least bandwidth in kLeast … kMost with that utilisation, which more bandwidth does not
/// lower; none: not even kMost has it.
std::optional<double> least(Utilisation& utilisation, double wanted, Machines machines,
                            double guess) {
  const auto reaches = [&](double bandwidth) {
    return utilisation.at(bandwidth, machines) >= wanted;
  };
  // Ends of an interval are near what is between them.
  const bool nominal = machines == Machines::kNominal;
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
  const double precision = nominal ? kPrecision : kPrecisionOfEnds;
  while (high > low * (1 + precision)) {
    const double middle = std::sqrt(low * high);
    (reaches(middle) ? high : low) = middle;
  }
  return high;
}

/// What more bandwidth does not shorten.
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
    const std::optional<double> found = least(utilisation, wanted, Machines::kNominal, guess);
    row.bits_per_s = bits(found);
    if (found) {
      guess = *found;
      row.bits_per_s_p10 = bits(least(utilisation, wanted, Machines::kFast, *found));
      row.bits_per_s_p90 = bits(least(utilisation, wanted, Machines::kSlow, *found));
    } else {
      row.reason =
          fmt::format("{:.1f} % at any bandwidth: the rest is {}",
                      100 * utilisation.at(kMost, Machines::kNominal), rest(scenario.cluster));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace hipress::planner
