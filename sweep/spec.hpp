#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/yaml.hpp"
#include "plans/trust.hpp"

namespace hipress::sweep {

/// Axes of a sweep, in the order of its points: the last axis changes fastest. Axes before kProfile
/// determine the graph of a given plan, so points with the same graph are adjacent.
enum Axis : std::size_t {
  kModel,
  kTopology,
  kNodes,
  kPlan,
  kAlgorithm,
  kRank,
  kRatio,
  kPartitions,
  kComputeTime,
  kSchedule,
  kSteps,
  kFragments,
  kReshard,
  kGpusPerNode,
  kProfile,
  kCluster,
  kNetwork,
  kBandwidth,
  kLatency,
  kOverhead,
  kComputeSpeed,
  kHostsPerRack,
  kOversubscription,
  kStragglers,
  kStragglerSpeed,
  kSlowLink,
  kMachine,
  kCards,
  kAxes
};
inline constexpr std::size_t kGraphAxes = kProfile;

/// One value of an axis.
struct AxisValue {
  std::string text;              ///< text in the CSV; empty: unset, so the source in
                                 ///< AxisRow::otherwise decides
  std::optional<double> number;  ///< seconds, bytes per second, a count or a factor
  int line = 0;                  ///< line in the spec; 0: a default
};

/// Position of an axis's column in the CSV. New columns come last, so that programs that read by
/// position keep working.
enum class ColumnPlace : std::uint8_t { kBeforeResults, kBehindResults, kLast };

/// Kind of an axis's numbers. kNone: words, which have no ranges.
enum class AxisNumbers : std::uint8_t { kNone, kReal, kWhole };

/// Definition of an axis, in a row of axes().
struct AxisRow {
  std::string_view name;       ///< key in the spec
  std::string_view column;     ///< column name in the CSV, with the unit
  std::string_view help;       ///< values of the axis, with an example
  std::string_view fallback;   ///< value if the spec does not name the axis
  std::string_view otherwise;  ///< source of the default if there is no fallback: "the profile's"
  AxisValue (*parse)(const io::YamlNode& node);
  AxisNumbers numbers = AxisNumbers::kNone;  ///< axes with numbers also take ranges
  ColumnPlace place = ColumnPlace::kBeforeResults;
  bool numeric() const { return numbers != AxisNumbers::kNone; }
};
std::span<const AxisRow> axes();  ///< indexed by Axis

/// A sweep, as its YAML defines it (docs/simulator.md). Each axis has at least one value.
struct SweepSpec {
  std::string file;
  std::array<std::vector<AxisValue>, kAxes> values;
  plans::Trust trust = {};  ///< programs that the spec and its plans may contain

  /// Number of points: the product of the axes' lengths.
  std::int64_t points() const;
  /// Path of a file that the spec names. It is relative to the spec's folder if the file exists
  /// there; otherwise it is used as written.
  std::string path(const AxisValue& value) const;
  /// Throws InputError about a value: "spec.yaml:3: nodes: …".
  [[noreturn]] void fail(Axis axis, const AxisValue& value, const std::string& message) const;
};

/// Reads a spec. Throws InputError, with file and line, for an unknown axis, an axis without
/// values, an invalid or duplicate value, an endless range, more than a million points, an
/// untrusted program (x.pse) as algorithm, and parameters unknown to an algorithm or schedule.
SweepSpec read_sweep(const std::string& file, const plans::Trust& trust = {});
/// Parses a spec from text. Messages call it `name`.
SweepSpec parse_sweep(const std::string& text, const std::string& name,
                      const plans::Trust& trust = {});

/// Axis values of a point, as indices into SweepSpec::values.
using Point = std::array<std::uint32_t, kAxes>;
Point point(const SweepSpec& spec, std::int64_t index);

/// Algorithm of a point, with the values of axes rank and ratio as parameters: "powersgd(rank=4)".
std::string algorithm(const SweepSpec& spec, const Point& point);
/// Schedule of a point, with the values of axes steps, fragments and reshard as parameters.
std::string schedule(const SweepSpec& spec, const Point& point);
/// True if the spec sets a schedule or a schedule's parameter.
bool gives_schedule(const SweepSpec& spec);

}  // namespace hipress::sweep
