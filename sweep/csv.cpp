#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "sweep/sweep.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

/// Seconds with all digits down to the picosecond, without trailing zeros.
std::string exact_seconds(Picoseconds time) {
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  const std::int64_t length = std::chrono::abs(time).count();
  std::string text =
      fmt::format("{}{}.{:012}", time.count() < 0 ? "-" : "", length / kSecond, length % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Characters with which spreadsheets begin a formula that they run.
constexpr std::string_view kFormula = "=+-@\t\r";
constexpr std::string_view kSeparators = ",;\t\r\n";

bool runs(std::string_view text, std::size_t begin) {
  return begin < text.size() && kFormula.find(text[begin]) != kFormula.npos;
}

/// Makes one CSV field of a cell. An apostrophe before a text keeps spreadsheets from running it. A
/// text that already begins with apostrophes gets another one, so that text_of() in _tables.py can
/// remove it.
std::string field(const SweepCell& cell) {
  const bool guarded = !cell.number && runs(cell.text, cell.text.find_first_not_of('\''));
  const std::string text = (guarded ? "'" : "") + cell.text;
  if (text.find('"') == std::string::npos && text.find_first_of(kSeparators) == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Makes a comment from a line of provenance. Separators are escaped if a spreadsheet would run the
/// cell after them.
std::string comment(std::string_view line) {
  std::string text = "# ";
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool begins = kSeparators.find(line[i]) != kSeparators.npos &&
                        runs(line, line.find_first_not_of(" \"'", i + 1));
    text += begins ? fmt::format("\\x{:02x}", line[i]) : std::string(1, line[i]);
  }
  return text;
}

SweepCell axis_cell(const SweepSpec& spec, const SweepRow& row, std::size_t axis) {
  switch (axis) {
    case kComputeTime: {
      const std::optional<double> given = spec.values[axis][row.point[axis]].number;
      return {given ? fmt::format("{:.15g}", *given) : "", true};
    }
    case kBandwidth:
      return {fmt::format("{:.15g}", row.bandwidth), true};
    case kLatency:
      return {fmt::format("{:.15g}", row.latency_s), true};
    case kOverhead:
      return {fmt::format("{:.15g}", row.overhead_s), true};
    default:
      return {spec.values[axis][row.point[axis]].text, axes()[axis].numeric()};
  }
}

}  // namespace

std::vector<std::string> sweep_columns() {
  std::vector<std::string> names;
  const auto add_axes = [&](ColumnPlace place) {
    for (const AxisRow& axis : axes()) {
      if (axis.place == place) names.emplace_back(axis.column);
    }
  };
  add_axes(ColumnPlace::kBeforeResults);
  for (const char* result : {"iteration_s", "synchronisation_s", "compute_s",
                             "exposed_communication_s", "speedup", "tasks", "speedup_over_ddp"}) {
    names.emplace_back(result);
  }
  add_axes(ColumnPlace::kBehindResults);
  for (const char* result :
       {"iteration_s_p10", "iteration_s_p90", "speedup_over_ddp_p10", "speedup_over_ddp_p90"}) {
    names.emplace_back(result);
  }
  add_axes(ColumnPlace::kLast);
  return names;
}

std::vector<std::string> axis_columns() {
  std::vector<std::string> names;
  for (const AxisRow& axis : axes()) names.emplace_back(axis.column);
  return names;
}

std::vector<SweepCell> sweep_cells(const SweepSpec& spec, const SweepRow& row) {
  std::vector<SweepCell> cells;
  const auto add_axes = [&](ColumnPlace place) {
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (axes()[axis].place == place) cells.push_back(axis_cell(spec, row, axis));
    }
  };
  const auto number = [&](std::string text) { cells.push_back({std::move(text), true}); };
  const auto add_interval = [&](const std::optional<Percentiles>& interval) {
    number(interval ? fmt::format("{:.6g}", interval->p10) : "");
    number(interval ? fmt::format("{:.6g}", interval->p90) : "");
  };
  add_axes(ColumnPlace::kBeforeResults);
  number(exact_seconds(row.iteration));
  number(exact_seconds(row.synchronisation));
  number(exact_seconds(row.compute));
  number(exact_seconds(row.iteration - row.compute));
  number(fmt::format("{:.6g}", row.speedup));
  number(std::to_string(row.tasks));
  number(row.speedup_over_ddp ? fmt::format("{:.6g}", *row.speedup_over_ddp) : "");
  add_axes(ColumnPlace::kBehindResults);
  add_interval(row.interval_s);
  add_interval(row.speedup_over_ddp_interval);
  add_axes(ColumnPlace::kLast);
  return cells;
}

void write_sweep(std::ostream& out, const SweepSpec& spec, const Shard& shard,
                 const std::vector<SweepRow>& rows, const std::vector<std::string>& provenance) {
  if (shard.index == 1) {
    for (const std::string& line : provenance) out << comment(line) << '\n';
    fmt::print(out, "{}\n", fmt::join(sweep_columns(), ","));
  }
  for (const SweepRow& row : rows) {
    std::string_view separator;
    for (const SweepCell& cell : sweep_cells(spec, row)) {
      out << separator << field(cell);
      separator = ",";
    }
    out << '\n';
  }
}

}  // namespace hipress::sweep
