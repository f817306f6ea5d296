#include "sim/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "costs/assumed_spread.hpp"
#include "sim/parallel.hpp"

namespace hipress::sim {
namespace {

constexpr std::size_t kReplicas = 2000;
constexpr double kMinStep = 0.05;     // minimum relative change of costs, far above rounding errors
constexpr double kOfMedian = 1.2533;  // σ of a median of n draws is √(π/2)·σ/√n

/// Draws of a replica, in standard deviations.
struct Draw {
  double host, links, compute, error, other_error, factor, other_factor;
};

/// Quantile of the standard normal distribution, by bisection.
double standard_normal_quantile(double probability) {
  double low = -8, high = 8;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Normal draws at the points of an additive lattice, which fills its five dimensions evenly
/// (R-sequence; Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018). The
/// draws of the two factors are lattices of their own.
std::vector<Draw> make_draws() {
  constexpr double kRoot = 1.1347241384015194;  // root of x^6 = x + 1
  const auto normal_at = [](double place) {
    return standard_normal_quantile(std::clamp(place - std::floor(place), 1e-6, 1 - 1e-6));
  };
  const auto normal = [&](std::size_t i, int dimension) {
    return normal_at(0.5 + static_cast<double>(i + 1) / std::pow(kRoot, dimension));
  };
  std::vector<Draw> draws;
  for (std::size_t i = 0; i < kReplicas; ++i) {
    draws.push_back({normal(i, 1), normal(i, 2), normal(i, 3), normal(i, 4), normal(i, 5),
                     normal_at(static_cast<double>(i + 1) * std::sqrt(2.0)),
                     normal_at(static_cast<double>(i + 1) * std::sqrt(3.0))});
  }
  return draws;
}

const std::vector<Draw>& draws() {
  static const std::vector<Draw> made = make_draws();
  return made;
}

/// Time of a response in a draw. exp(error) scales communication (the simulator's error),
/// exp(of_run) the whole time (a run's median); `drawn_factor` is the draw for Response::factor.
/// Lower costs do not shorten hidden communication, so `floor_s` is a lower bound; `wire_s` is a
/// second one.
double time_of(const Response& response, const costs::Spread& spread, const Draw& draw,
               double error, double drawn_factor, double of_run = 0) {
  const double host = response.host_s * std::exp(spread.host * draw.host);
  const double links = response.links_s * std::exp(spread.links * draw.links);
  const double compute = response.compute_s * std::exp(spread.compute * draw.compute);
  const double factor = std::exp(spread.compute * draw.compute);
  const double left_out = response.left_out_s * factor;
  const double time =
      std::max((host + links) * std::exp(error) + compute, response.floor_s * factor) - left_out;
  return std::max(time * std::exp(of_run), response.wire_s - left_out) * response.factor *
         std::exp(response.factor_deviation * drawn_factor);
}

void slow(costs::LinkCosts& link, double factor) {
  link.overhead_s *= factor;
  link.latency_s *= factor;
  link.bandwidth /= factor;
  link.bandwidth_both_ways /= factor;
}

void slow_cores(costs::LinkCosts& link, double factor) {
  link.core_s_per_byte *= factor;
  link.core_s_per_message *= factor;
}

double step_of(double deviation) { return std::exp(std::max(deviation, kMinStep)); }

}  // namespace

void slow_kernels(double factor, costs::Profile& profile) {
  for (auto& [name, codec] : profile.codecs) codec = codec.times(factor);
  profile.merge = profile.merge.times(factor);
}

void slow_transfers(double factor, costs::Profile& profile, costs::Cluster& cluster) {
  slow_cores(profile.link, factor);
  slow_cores(cluster.link, factor);
  if (cluster.host_link) slow_cores(*cluster.host_link, factor);
}

void slow_host(double factor, costs::Profile& profile, costs::Cluster& cluster) {
  slow_kernels(factor, profile);
  slow_transfers(factor, profile, cluster);
}

void slow_links(double factor, costs::Profile& profile, costs::Cluster& cluster) {
  slow(profile.link, factor);
  for (auto* const curves :
       {&profile.all_reduce, &profile.all_gather, &profile.reduce_scatter, &profile.all_to_all}) {
    for (auto& [nodes, curve] : *curves) curve = curve.times(factor);
  }
  slow(cluster.link, factor);
  if (cluster.host_link) slow(*cluster.host_link, factor);
  if (cluster.site) slow(cluster.site->link, factor);
  cluster.gpu_link.overhead_s *= factor;
  cluster.gpu_link.bandwidth /= factor;
  for (costs::RackCosts& rack : cluster.racks) rack.latency_s *= factor;
  for (costs::SlowLink& link : cluster.slow_links) {
    link.bandwidth /= factor;
    if (link.latency_s) *link.latency_s *= factor;
  }
}

void leave_wires(costs::Profile& profile, costs::Cluster& cluster) {
  constexpr double kInNoTime = 1e9;
  for (auto& [name, codec] : profile.codecs) codec = codec.times(0);
  for (auto* const curves :
       {&profile.all_reduce, &profile.all_gather, &profile.reduce_scatter, &profile.all_to_all}) {
    curves->clear();
  }
  const auto leave_wire = [](costs::LinkCosts& link) {
    link.overhead_s = link.latency_s = link.core_s_per_byte = link.core_s_per_message = 0;
  };
  leave_wire(cluster.link);
  if (cluster.host_link) leave_wire(*cluster.host_link);
  if (cluster.site) leave_wire(cluster.site->link);
  cluster.gpu_link.overhead_s = 0;
  for (costs::RackCosts& rack : cluster.racks) rack.latency_s = 0;
  for (costs::SlowLink& link : cluster.slow_links) link.latency_s.reset();
  cluster.overlap = {};
  cluster.cores_per_host = 0;
  for (double& speed : cluster.compute_speed) speed *= kInNoTime;
}

Response without_compute(const Response& response, double seconds) {
  Response rest = response;
  rest.time_s -= seconds;
  rest.left_out_s += seconds;
  return rest;
}

std::optional<Response> respond(double nominal_s, double compute_s, const costs::Profile& profile,
                                const costs::Cluster& cluster, const TimeOf& time_s,
                                unsigned jobs) {
  const costs::Spread spread = costs::spread_of(profile);
  struct Stress {
    void (*apply)(double factor, costs::Profile& profile, costs::Cluster& cluster);
    double factor;
    std::optional<double> share_s = {};
  };
  std::array stresses = {Stress{slow_host, step_of(spread.host)},
                         Stress{slow_links, step_of(spread.links)}};
  std::optional<double> wire_s = 0;
  const bool given = costs::rates_are_given(profile, cluster);
  run_parallel(stresses.size() + (given ? 1 : 0), jobs, [&](std::size_t i, unsigned) {
    costs::Profile costs = profile;
    costs::Cluster machines = cluster;
    if (i == stresses.size()) {
      leave_wires(costs, machines);
      wire_s = time_s(costs, machines);
      return;
    }
    Stress& stress = stresses[i];
    stress.apply(stress.factor, costs, machines);
    const std::optional<double> slower_s = time_s(costs, machines);
    if (slower_s) stress.share_s = std::max(0.0, (*slower_s - nominal_s) / (stress.factor - 1));
  });
  const auto& [host, links] = stresses;
  if (!host.share_s || !links.share_s || !wire_s) return std::nullopt;
  // The sum may exceed the time, since costs also change the order of tasks.
  const double sum_s = *host.share_s + *links.share_s;
  const double factor = sum_s > nominal_s ? nominal_s / sum_s : 1;
  return Response{.time_s = nominal_s,
                  .host_s = *host.share_s * factor,
                  .links_s = *links.share_s * factor,
                  .compute_s = std::max(0.0, nominal_s - sum_s),
                  .floor_s = std::min(compute_s, nominal_s),
                  .wire_s = std::min(*wire_s, nominal_s)};
}

Response respond(const Scenario& scenario, const casync::TaskGraph& graph, double iteration_s,
                 double compute_s, unsigned jobs) {
  const TimeOf time_s = [&](const costs::Profile& profile, const costs::Cluster& cluster) {
    Scenario changed = scenario;
    changed.profile = profile;
    changed.cluster = cluster;
    return std::optional(casync::to_seconds(iteration_time(changed, graph)));
  };
  return *respond(iteration_s, compute_s, scenario.profile, scenario.cluster, time_s, jobs);
}

Interval interval(const Response& response, const costs::Spread& spread, int iterations) {
  const double of_median =
      iterations > 0 ? kOfMedian * spread.iterations / std::sqrt(static_cast<double>(iterations))
                     : 0;
  std::vector<double> times;
  for (const Draw& draw : draws()) {
    times.push_back(time_of(response, spread, draw, spread.model * draw.error, draw.factor,
                            of_median * draw.other_error));
  }
  std::sort(times.begin(), times.end());
  return {times[kReplicas / 10], times[kReplicas - kReplicas / 10 - 1]};
}

std::vector<SpreadSource> explain_interval(const Response& response, const costs::Spread& spread) {
  struct Row {
    std::string_view name, help;
    double costs::Spread::*deviation;
  };
  constexpr std::array kRows = {
      Row{"host", "kernels, and the CPU time of transfers", &costs::Spread::host},
      Row{"links", "bandwidths, overheads and latencies", &costs::Spread::links},
      Row{"compute", "forward and backward", &costs::Spread::compute},
      Row{"model", "the simulator's own error, of communication", &costs::Spread::model}};
  std::vector<SpreadSource> sources;
  double sum = 0;
  for (const Row& row : kRows) {
    costs::Spread only;
    only.*row.deviation = spread.*row.deviation;
    const Interval alone = interval(response, only);
    const double width = alone.p90_s - alone.p10_s;
    sources.push_back({row.name, row.help, spread.*row.deviation, alone, width * width});
    sum += width * width;
  }
  for (SpreadSource& source : sources) source.share = sum > 0 ? source.share / sum : 0;
  return sources;
}

Saving saving(const Response& first, const Response& second, const costs::Spread& spread,
              double margin) {
  std::vector<double> saved;
  for (const Draw& draw : draws()) {
    const double a_s = time_of(first, spread, draw, spread.model * draw.error, draw.factor);
    const double b_s =
        time_of(second, spread, draw, spread.model * draw.other_error, draw.other_factor);
    saved.push_back(b_s > 0 ? 1 - a_s / b_s : 0);
  }
  std::sort(saved.begin(), saved.end());
  const auto faster = saved.end() - std::upper_bound(saved.begin(), saved.end(), margin);
  const double probability = static_cast<double>(faster) / static_cast<double>(kReplicas);
  return {saved[kReplicas / 10], saved[kReplicas / 2], saved[kReplicas - kReplicas / 10 - 1],
          first == second && margin == 0 ? 0.5 : probability};
}

}  // namespace hipress::sim
