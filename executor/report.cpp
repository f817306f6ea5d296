#include "executor/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "io/quantity.hpp"

namespace hipress::executor {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

/// (predicted - measured) / measured; nothing where nothing was measured to be wrong about.
std::optional<double> relative_error(std::optional<double> predicted, double measured) {
  if (!predicted || measured <= 0) return std::nullopt;
  return (*predicted - measured) / measured;
}

std::optional<double> minus(std::optional<double> value, double subtrahend) {
  return value ? std::optional(*value - subtrahend) : std::nullopt;
}

nlohmann::ordered_json to_json(const std::vector<traces::KindComparison>& kinds) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const traces::KindComparison& row : kinds) {
    rows.push_back({{"kind", casync::to_string(row.kind)},
                    {"tasks", row.tasks},
                    {"predicted_s", row.predicted_s},
                    {"measured_s", row.measured_s}});
  }
  return rows;
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::string percent_or_dash(std::optional<double> value) {
  return value ? fmt::format("{:+.1f} %", 100 * *value) : "-";
}

std::string duration_or_dash(std::optional<double> seconds) {
  if (!seconds) return "-";
  return *seconds < 0 ? "-" + io::format_duration(-*seconds) : io::format_duration(*seconds);
}

void print_row(std::ostream& out, const std::string& name, std::optional<double> predicted,
               double measured) {
  fmt::print(out, "{:24}{:>14}{:>14}{:>12}\n", name, duration_or_dash(predicted),
             duration_or_dash(measured), percent_or_dash(relative_error(predicted, measured)));
}

}  // namespace

Summary summarise(std::vector<double> values) {
  std::ranges::sort(values);
  return {
      .median = quantile(values, 0.5), .p10 = quantile(values, 0.1), .p90 = quantile(values, 0.9)};
}

Report make_report(const models::Model& model, const casync::TaskGraph& graph,
                   const ReplayResult& replayed, const sim::Result* predicted) {
  std::vector<double> iteration_s = replayed.iteration_s;
  for (double& value : iteration_s) value += model.forward_s;
  Report report{.ranks = graph.nodes,
                .measured_iteration_s = summarise(iteration_s),
                .each_iteration_s = iteration_s,
                .compute_s = model.forward_s + models::backward_s(model),
                .process_cpu_s = summarise(replayed.process_cpu_s).median,
                .predicted_iteration_s = {},
                .verified = replayed.verified,
                .bytes_sent = replayed.bytes_sent,
                .kinds = {}};
  if (predicted != nullptr) {
    report.predicted_iteration_s = casync::to_seconds(predicted->iteration);
    report.kinds = traces::compare_by_kind(graph, predicted->timeline, replayed.timeline);
  }
  return report;
}

nlohmann::ordered_json to_json(const Report& report) {
  const auto& measured = report.measured_iteration_s;
  const double exposed_s = measured.median - report.compute_s;
  const auto predicted_exposed_s = minus(report.predicted_iteration_s, report.compute_s);
  return {{"ranks", report.ranks},
          {"iterations", report.each_iteration_s.size()},
          {"measured_iteration_s",
           {{"median", measured.median}, {"p10", measured.p10}, {"p90", measured.p90}}},
          {"each_measured_iteration_s", report.each_iteration_s},
          {"process_cpu_s", report.process_cpu_s},
          {"predicted_iteration_s", number_or_null(report.predicted_iteration_s)},
          {"relative_error",
           number_or_null(relative_error(report.predicted_iteration_s, measured.median))},
          {"compute_s", report.compute_s},
          {"measured_exposed_communication_s", exposed_s},
          {"predicted_exposed_communication_s", number_or_null(predicted_exposed_s)},
          {"exposed_communication_relative_error",
           number_or_null(relative_error(predicted_exposed_s, exposed_s))},
          {"verified", report.verified},
          {"bytes_sent_per_node", report.bytes_sent},
          {"kinds", to_json(report.kinds)}};
}

void print(std::ostream& out, const Report& report) {
  const auto& measured = report.measured_iteration_s;
  fmt::print(out, "{:24}{:>14}{:>14}{:>12}\n", "", "predicted", "measured", "error");
  print_row(out, "iteration", report.predicted_iteration_s, measured.median);
  print_row(out, "exposed communication", minus(report.predicted_iteration_s, report.compute_s),
            measured.median - report.compute_s);
  for (const traces::KindComparison& row : report.kinds) {
    print_row(out, fmt::format("  {} {}", row.tasks, casync::to_string(row.kind)), row.predicted_s,
              row.measured_s);
  }
  fmt::print(out, "measured: median of {} iterations on {} ranks, p10 {}, p90 {}\n",
             report.each_iteration_s.size(), report.ranks, io::format_duration(measured.p10),
             io::format_duration(measured.p90));
  std::string bytes;
  for (const std::int64_t sent : report.bytes_sent) bytes += " " + io::format_amount(sent);
  fmt::print(out, "sent per node:{}\n", bytes);
  fmt::print(out, "verified: {}\n", report.verified ? "yes" : "no");
}

}  // namespace hipress::executor
