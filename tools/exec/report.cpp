#include "tools/exec/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "io/quantity.hpp"
#include "io/spelling.hpp"

namespace hipress::replay {
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

io::Document to_json(const std::vector<traces::KindComparison>& kinds) {
  io::Document rows = io::Document::list();
  for (const traces::KindComparison& row : kinds) {
    rows.push_back({{"kind", casync::to_string(row.kind)},
                    {"tasks", row.tasks},
                    {"predicted_s", row.predicted_s},
                    {"measured_s", row.measured_s}});
  }
  return rows;
}

using Predicted = std::optional<Report::Predicted>;

std::optional<double> time_of(const Predicted& predicted) {
  return predicted ? std::optional(predicted->iteration_s) : std::nullopt;
}

std::optional<bool> is_too_uncertain(const Predicted& predicted) {
  return predicted ? std::optional(sim::too_uncertain(predicted->interval)) : std::nullopt;
}

/// None without a prediction, or where its interval is too wide to tell.
std::optional<bool> within_interval(const Predicted& predicted, double measured) {
  if (is_too_uncertain(predicted).value_or(true)) return std::nullopt;
  return predicted->interval.p10_s <= measured && measured <= predicted->interval.p90_s;
}

/// The time under `key`, and its interval beside it; null without one.
void add_prediction(io::Document& json, const std::string& key, const Predicted& predicted) {
  json[key] = time_of(predicted);
  json[key + "_p10"] = predicted ? io::Document(predicted->interval.p10_s) : nullptr;
  json[key + "_p90"] = predicted ? io::Document(predicted->interval.p90_s) : nullptr;
}

io::Document drift_json(const std::optional<Drift>& drift) {
  if (!drift) return nullptr;
  return {{"copy", drift->copy}, {"codec", drift->codec}, {"transport", drift->transport}};
}

void print_interval(std::ostream& out, const Predicted& predicted, double measured) {
  if (!predicted) return;
  const std::optional<bool> within = within_interval(predicted, measured);
  fmt::print(out, "  within its 10–90 % interval {} … {}: {}\n",
             io::format_duration(predicted->interval.p10_s),
             io::format_duration(predicted->interval.p90_s),
             !within   ? "too uncertain"
             : *within ? "yes"
                       : "no");
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

Report make_report(const models::Model& model, const casync::Schedule& schedule,
                   const casync::TaskGraph& graph, const ReplayResult& replayed) {
  std::vector<double> iteration_s = replayed.iteration_s;
  const double forward_s = models::before_backward_s(model);
  const casync::Timetable table = schedule.timetable(model);
  // Where computation waits for nothing, backward is replayed; else all.
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

io::Document to_json(const Report& report) {
  const auto& measured = report.measured_iteration_s;
  const double exposed_s = measured.median - report.compute_s;
  const auto predicted_s = time_of(report.predicted);
  const auto predicted_exposed_s = minus(predicted_s, report.compute_s);
  io::Document json = {
      {"ranks", report.ranks},
      {"steps_per_period", report.steps},
      {"utilization", measured.median > 0 ? report.compute_s / measured.median : 1.0},
      {"iterations", report.each_iteration_s.size()},
      {"measured_iteration_s",
       {{"median", measured.median}, {"p10", measured.p10}, {"p90", measured.p90}}},
      {"each_measured_iteration_s", report.each_iteration_s},
      {"process_cpu_s", report.process_cpu_s}};
  add_prediction(json, "predicted_iteration_s", report.predicted);
  json["relative_error"] = relative_error(predicted_s, measured.median);
  json["within_interval"] = within_interval(report.predicted, measured.median);
  json["too_uncertain"] = is_too_uncertain(report.predicted);
  json["drift"] = drift_json(report.drift);
  json["drifted"] = report.drift ? io::Document(report.drifted) : nullptr;
  add_prediction(json, "reprobed_iteration_s", report.reprobed);
  json["reprobed_relative_error"] = relative_error(time_of(report.reprobed), measured.median);
  json["notes"] = io::Document::list({});
  for (const std::string& note : report.notes) json["notes"].push_back(io::as_command_line(note));
  json["compute_s"] = report.compute_s;
  json["measured_exposed_communication_s"] = exposed_s;
  json["predicted_exposed_communication_s"] = predicted_exposed_s;
  json["exposed_communication_relative_error"] = relative_error(predicted_exposed_s, exposed_s);
  json["verified"] = report.verified;
  json["bytes_sent_per_node"] = report.bytes_sent;
  json["kinds"] = to_json(report.kinds);
  return json;
}

void print(std::ostream& out, const Report& report) {
  const auto& measured = report.measured_iteration_s;
  const auto predicted_s = time_of(report.predicted);
  fmt::print(out, "{:24}{:>14}{:>14}{:>12}\n", "", "predicted", "measured", "error");
  print_row(out, "iteration", predicted_s, measured.median);
  print_interval(out, report.predicted, measured.median);
  if (report.reprobed) {
    print_row(out, "  by its speed now", report.reprobed->iteration_s, measured.median);
    print_interval(out, report.reprobed, measured.median);
  }
  print_row(out, "exposed communication", minus(predicted_s, report.compute_s),
            measured.median - report.compute_s);
  for (const traces::KindComparison& row : report.kinds) {
    print_row(out, fmt::format("  {} {}", row.tasks, casync::to_string(row.kind)), row.predicted_s,
              row.measured_s);
  }
  fmt::print(out, "measured: median of {} iterations on {} ranks, p10 {}, p90 {}\n",
             report.each_iteration_s.size(), report.ranks, io::format_duration(measured.p10),
             io::format_duration(measured.p90));
  for (const std::string& note : report.notes)
    fmt::print(out, "note: {}\n", io::as_command_line(note));
  std::string bytes;
  for (const std::int64_t sent : report.bytes_sent) bytes += " " + io::format_amount(sent);
  fmt::print(out, "sent per node:{}\n", bytes);
  fmt::print(out, "verified: {}\n", report.verified ? "yes" : "no");
}

}  // namespace hipress::replay
