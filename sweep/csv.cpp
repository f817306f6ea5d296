#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>
#include <string>

#include "sweep/sweep.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

/// All digits of the picosecond, without zeros at the end.
std::string exact_seconds(Picoseconds time) {
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  const std::int64_t length = std::chrono::abs(time).count();
  std::string text =
      fmt::format("{}{}.{:012}", time.count() < 0 ? "-" : "", length / kSecond, length % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// A name as one field of CSV: in quotes where it has a comma, quotes or the end of a line.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Its column stands behind those of results, where readers by place do not look for others.
bool is_last(std::size_t axis) { return axis == kComputeTime; }

void write_header(std::ostream& out) {
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (!is_last(axis)) out << axes()[axis].column << ',';
  }
  out << "iteration_s,synchronisation_s,compute_s,exposed_communication_s,speedup,tasks,"
         "speedup_over_ddp,"
      << axes()[kComputeTime].column << '\n';
}

std::string axis_field(const SweepSpec& spec, const SweepRow& row, std::size_t axis) {
  switch (axis) {
    case kComputeTime: {
      const std::optional<double> given = spec.values[axis][row.point[axis]].number;
      return given ? fmt::format("{:.15g}", *given) : "";
    }
    case kBandwidth:
      return fmt::format("{:.15g}", row.bandwidth);
    case kLatency:
      return fmt::format("{:.15g}", row.latency_s);
    case kOverhead:
      return fmt::format("{:.15g}", row.overhead_s);
    default:
      return field(spec.values[axis][row.point[axis]].text);
  }
}

}  // namespace

void write_sweep(std::ostream& out, const SweepSpec& spec, const Shard& shard,
                 const std::vector<SweepRow>& rows) {
  if (shard.index == 1) write_header(out);
  for (const SweepRow& row : rows) {
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      if (!is_last(axis)) out << axis_field(spec, row, axis) << ',';
    }
    fmt::print(out, "{},{},{},{},{:.6g},{},{},{}\n", exact_seconds(row.iteration),
               exact_seconds(row.synchronisation), exact_seconds(row.compute),
               exact_seconds(row.iteration - row.compute), row.speedup, row.tasks,
               row.speedup_over_ddp ? fmt::format("{:.6g}", *row.speedup_over_ddp) : "",
               axis_field(spec, row, kComputeTime));
  }
}

}  // namespace hipress::sweep
