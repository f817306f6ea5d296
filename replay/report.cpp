#include "replay/report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hipress::replay {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::optional<double> relative_error(std::optional<double> predicted, double measured) {
  if (!predicted || measured <= 0) return std::nullopt;
  return (*predicted - measured) / measured;
}

std::optional<bool> Report::Predicted::within_interval(double measured_s) const {
  if (sim::too_uncertain(interval)) return std::nullopt;
  return interval.p10_s <= measured_s && measured_s <= interval.p90_s;
}

std::optional<double> Report::predicted_exposed_s() const {
  return predicted ? std::optional(predicted->iteration_s - compute_s) : std::nullopt;
}

Summary summarise(std::vector<double> values) {
  std::ranges::sort(values);
  return {
      .median = quantile(values, 0.5), .p10 = quantile(values, 0.1), .p90 = quantile(values, 0.9)};
}

Report make_report(const models::Model& model, const casync::Schedule& schedule,
                   const casync::TaskGraph& graph, const ReplayResult& replayed) {
  std::vector<double> iteration_s = replayed.iteration_s;
  const double forward_s = models::before_backward_s(model);
  const casync::Timetable table = schedule.timetable(model);
  // A replay includes forward only if computation waits for communication within the period.
  const double before_s = table.computation_waits() ? 0 : forward_s;
  for (double& value : iteration_s) value += before_s;
  Report report;
  report.ranks = graph.nodes;
  report.measured_iteration_s = summarise(iteration_s);
  report.each_iteration_s = std::move(iteration_s);
  report.steps = table.steps;
  report.compute_s = table.steps * (forward_s + models::backward_s(model));
  report.process_cpu_s = summarise(replayed.process_cpu_s).median;
  report.verified = replayed.verified;
  report.bytes_sent = replayed.bytes_sent;
  return report;
}

}  // namespace hipress::replay
