#include "tools/exec/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <optional>
#include <string>

#include "io/quantity.hpp"
#include "io/spelling.hpp"

namespace hipress::replay {
namespace {

void print_interval(std::ostream& out, const Report::Predicted& predicted, double measured) {
  const std::optional<bool> within = predicted.within_interval(measured);
  fmt::print(out, "  within its 10–90 % interval {} … {}: {}\n",
             io::format_duration(predicted.interval.p10_s),
             io::format_duration(predicted.interval.p90_s),
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

void print_prediction(std::ostream& out, const std::string& name,
                      const std::optional<Report::Predicted>& predicted, double measured) {
  print_row(out, name, predicted ? std::optional(predicted->iteration_s) : std::nullopt, measured);
  if (predicted) print_interval(out, *predicted, measured);
}

}  // namespace

void print(std::ostream& out, const requests::Replayed& replayed) {
  const Report& report = replayed.report;
  if (replayed.automatic) {
    for (const std::string& line : replayed.automatic->lines()) {
      fmt::print(out, "{}\n", io::as_command_line(line));
    }
  }
  const Summary& measured = report.measured_iteration_s;
  fmt::print(out, "{:24}{:>14}{:>14}{:>12}\n", "", "predicted", "measured", "error");
  print_prediction(out, "iteration", report.predicted, measured.median);
  if (report.reprobed) {
    print_prediction(out, "  by its speed now", report.reprobed, measured.median);
  }
  print_row(out, "exposed communication", report.predicted_exposed_s(), report.exposed_s());
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
  if (replayed.predicted_for) {
    fmt::print(out, "predicted for {}\n", io::as_command_line(*replayed.predicted_for));
  }
}

}  // namespace hipress::replay
