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

/// What a sweep varies. The order is that of the points: the last axis changes fastest. Those
/// before kProfile decide the task graph, so that points of one graph lie together.
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
  kAxes
};
inline constexpr std::size_t kGraphAxes = kProfile;

/// One value of an axis.
struct AxisValue {
  std::string text;              ///< as the CSV names it; empty: not given, so taken from elsewhere
  std::optional<double> number;  ///< seconds, bytes per second, a count or a factor
  int line = 0;                  ///< of the spec; 0: a default
};

/// Where an axis's column stands: those that came later stand further behind, for readers by place.
enum class ColumnPlace : std::uint8_t { kBeforeResults, kBehindResults, kLast };

/// What an axis's numbers are; kNone: words, which make no range.
enum class AxisNumbers : std::uint8_t { kNone, kReal, kWhole };

/// What there is to know of an axis: a row of axes().
struct AxisRow {
  std::string_view name;       ///< its key in the spec
  std::string_view column;     ///< its name in the CSV, with the unit
  std::string_view help;       ///< what its values are, with an example
  std::string_view fallback;   ///< the value where the spec does not name the axis
  std::string_view otherwise;  ///< says so for those without a fallback: "the profile's"
  AxisValue (*parse)(const io::YamlNode& node);
  AxisNumbers numbers = AxisNumbers::kNone;  ///< these also take ranges
  ColumnPlace place = ColumnPlace::kBeforeResults;
  bool numeric() const { return numbers != AxisNumbers::kNone; }
};
std::span<const AxisRow> axes();  ///< indexed by Axis

/// A sweep as its YAML says (docs/simulator.md): the values of every axis, at least one each.
struct SweepSpec {
  std::string file;
  std::array<std::vector<AxisValue>, kAxes> values;
  plans::Trust trust = {};  ///< the programs that the spec and its plans may bring

  /// The product of the numbers of values.
  std::int64_t points() const;
  /// A file that the spec names: beside the spec where there is one, else as it is written.
  std::string path(const AxisValue& value) const;
  /// Throws InputError at a value: "spec.yaml:3: nodes: …".
  [[noreturn]] void fail(Axis axis, const AxisValue& value, const std::string& message) const;
};

/// Reads a spec. InputError with file and line for an unknown axis, an axis without values, a value
/// that the axis cannot have or that is given twice, a range that does not end, more than a million
/// points, an algorithm that is a program (x.pse) and not trusted, and parameters that an algorithm
/// or a schedule of the spec does not have.
SweepSpec read_sweep(const std::string& file, const plans::Trust& trust = {});
/// The same from its text; `name` stands for the file.
SweepSpec parse_sweep(const std::string& text, const std::string& name,
                      const plans::Trust& trust = {});

/// The values of a point: indices into SweepSpec::values.
using Point = std::array<std::uint32_t, kAxes>;
Point point(const SweepSpec& spec, std::int64_t index);

/// The point's algorithm with what the axes rank and ratio say: "powersgd(rank=4)".
std::string algorithm(const SweepSpec& spec, const Point& point);
/// The point's schedule with what the axes steps, fragments and reshard say.
std::string schedule(const SweepSpec& spec, const Point& point);
/// The spec says a schedule, or a parameter of one.
bool gives_schedule(const SweepSpec& spec);

}  // namespace hipress::sweep
