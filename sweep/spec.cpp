#include "sweep/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>

#include "casync/topology.hpp"
#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "plans/plan_builder.hpp"
#include "sim/simulator.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

using io::YamlNode;

constexpr std::int64_t kMaxPoints = 1'000'000;
constexpr std::size_t kMaxValues = 100'000;

/// Value of an axis. Its text has 15 digits, which restore every decimal number of a spec.
AxisValue number_value(const YamlNode& node, double number) {
  return {fmt::format("{:.15g}", number), number, node.line()};
}

AxisValue integer_value(const YamlNode& node, std::int64_t number) {
  return {fmt::format("{}", number), static_cast<double>(number), node.line()};
}

AxisValue parse_text(const YamlNode& node) {
  const std::string text = node.text();
  if (text.empty()) node.fail("must name something, got an empty value");
  return {text, std::nullopt, node.line()};
}

AxisValue parse_topology(const YamlNode& node) {
  const std::string text = node.text();
  try {
    const casync::Topology& topology = casync::find_topology(text);
    if (topology.operation != casync::Operation::kMean) {
      node.fail(
          fmt::format("sweeps average gradients, and {} broadcasts; take one of {}, or plan "
                      "broadcasts with hipress-plan `job` broadcast",
                      topology.name, casync::topology_names(casync::Operation::kMean)));
    }
    return {std::string(topology.name), std::nullopt, node.line()};
  } catch (const std::invalid_argument& error) {
    node.fail(error.what());
  }
}

AxisValue parse_network_name(const YamlNode& node) {
  const std::string text = node.text();
  try {
    parse_network(text);
  } catch (const io::InputError& error) {
    node.fail(error.what());
  }
  return {text, std::nullopt, node.line()};
}

AxisValue parse_algorithm(const YamlNode& node) {
  const AxisValue value = parse_text(node);
  if (value.text == "none") {
    node.fail("must name the algorithm of gradients; compress nothing with 'plan: none'");
  }
  return value;
}

AxisValue parse_schedule(const YamlNode& node) {
  const std::string text = node.text();
  try {
    return {casync::Schedule::parse(text).text(), std::nullopt, node.line()};
  } catch (const std::invalid_argument& error) {
    node.fail(error.what());
  }
}

AxisValue parse_nodes(const YamlNode& node) {
  return integer_value(node, node.integer(1, costs::kMaxNodes));
}

AxisValue parse_gpus(const YamlNode& node) {
  return integer_value(node, node.integer(1, costs::kMaxGpus));
}

AxisValue parse_count(const YamlNode& node) { return integer_value(node, node.integer(1)); }

AxisValue parse_stragglers(const YamlNode& node) {
  return integer_value(node, node.integer(0, costs::kMaxNodes));
}

AxisValue parse_ratio(const YamlNode& node) {
  return number_value(node, node.number(1e-9, 1, "the share of a gradient's entries that is sent"));
}

AxisValue parse_oversubscription(const YamlNode& node) {
  return number_value(node, node.number(1, costs::kMaxFactor, "1 is none"));
}

AxisValue parse_share(const YamlNode& node) {
  return number_value(node, node.number(costs::kMinFactor, 1, "1 is as fast as the others"));
}

constexpr std::string_view kAsPlanned = "plan";

AxisValue parse_partitions(const YamlNode& node) {
  if (node.text() == kAsPlanned) return {std::string(kAsPlanned), std::nullopt, node.line()};
  return integer_value(node, node.integer(1, plans::kMaxPartitions));
}

AxisValue parse_bandwidth(const YamlNode& node) { return number_value(node, node.bandwidth()); }
AxisValue parse_duration(const YamlNode& node) { return number_value(node, node.duration()); }

AxisValue parse_factor(const YamlNode& node) {
  return number_value(node, node.number(costs::kMinFactor, costs::kMaxFactor, "1 is nominal"));
}

using enum ColumnPlace;
constexpr AxisNumbers kReal = AxisNumbers::kReal, kWhole = AxisNumbers::kWhole;

constexpr std::array<AxisRow, kAxes> kAxisRows = {{
    {"model", "model", "shipped models and files: vgg19", "", "required", parse_text},
    {"topology", "topology", "topologies, as for `topology`: ring", "ps", "", parse_topology},
    {"nodes", "nodes",
     "numbers of nodes N: 16; with a sharded schedule all their GPUs are nodes of the plan. "
     "Without the axis the number in the cluster files, if it is one number, else",
     "16", "", parse_nodes, kWhole},
    {"plan", "plan",
     "plan files, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made "
     "(below)",
     "all", "", parse_text},
    {"algorithm", "algorithm", "algorithm of plans that name none: onebit", "onebit", "",
     parse_algorithm},
    {"rank", "rank", "parameter rank of the algorithms: 4", "", "the algorithm's", parse_count,
     kWhole, kLast},
    {"ratio", "ratio", "share of the entries that sparse algorithms send (their rho): 0.01", "",
     "the algorithm's", parse_ratio, kReal, kLast},
    {"partitions", "partitions", "K of every gradient, or 'plan': as the plan says", kAsPlanned, "",
     parse_partitions, kWhole},
    {"compute_time", "compute_time_s",
     "time of forward and backward together, as for `compute_time`: 80ms", "", "the model's",
     parse_duration, kReal, kBehindResults},
    {"schedule", "schedule",
     "schedule of the synchronisation, as for `schedule`: 'local(steps=100)'; baselines have ddp's",
     "ddp", "", parse_schedule, AxisNumbers::kNone, kBehindResults},
    {"steps", "steps", "number of steps between two synchronisations (H) of schedule local: 100",
     "", "the schedule's", parse_count, kWhole, kLast},
    {"fragments", "fragments", "number of parts of the model that schedule local takes in turn: 4",
     "", "the schedule's", parse_count, kWhole, kLast},
    {"reshard", "reshard", "parameter reshard of schedules fsdp and hsdp: true, false or a number",
     "", "the schedule's", parse_text, AxisNumbers::kNone, kLast},
    {"gpus_per_node", "gpus_per_node",
     "number of GPUs of each node, which the cluster's gpu_link joins: 8", "", "the cluster's",
     parse_gpus, kWhole, kLast},
    {"profile", "profile", "shipped profiles and files: sosp21", "sosp21", "", parse_text},
    {"cluster", "cluster", "cluster files", "", "as the profile was measured", parse_text},
    {"network", "network", "port (one message at a time), fair (max-min)", "fair", "",
     parse_network_name},
    {"bandwidth", "bandwidth_bytes_per_s",
     "bandwidth of the cluster's link (not its host_link and gpu_link), one way and both ways: "
     "25Gbps",
     "", "the cluster's", parse_bandwidth, kReal},
    {"latency", "latency_s", "latency of the cluster's link, on the wire: 5us", "", "the cluster's",
     parse_duration, kReal},
    {"overhead", "overhead_s",
     "time that each message occupies both ports of the cluster's link: 1us", "", "the cluster's",
     parse_duration, kReal},
    {"compute_speed", "compute_speed",
     "factor on every node's computation and kernels: 2 is twice as fast", "1", "", parse_factor,
     kReal},
    {"hosts_per_rack", "hosts_per_rack", "number of hosts that share the uplink of a rack: 16", "",
     "the cluster's", parse_nodes, kWhole, kLast},
    {"oversubscription", "oversubscription",
     "oversubscription of racks: an uplink has the bandwidth of its hosts' links over this: 4", "",
     "the cluster's", parse_oversubscription, kReal, kLast},
    {"stragglers", "stragglers",
     "number of nodes, the last ones, that compute at straggler_speed: 1", "0", "",
     parse_stragglers, kWhole, kLast},
    {"straggler_speed", "straggler_speed", "factor on the computation of stragglers: 0.5", "0.5",
     "", parse_factor, kReal, kLast},
    {"slow_link", "slow_link",
     "bandwidth between the first two hosts, as a share of the others': 0.25", "1", "", parse_share,
     kReal, kLast},
    {"machine", "machine",
     "hosts of GPUs, shipped ones and files: p5.48xlarge. Every GPU is then a node, and without "
     "the "
     "axis profile the machine's kernels count",
     "", "none", parse_text, AxisNumbers::kNone, kLast},
    {"cards", "cards",
     "network cards of each host: 8. Those of a machine add up, and each has its rate; those of a "
     "cluster share its link",
     "", "the machine's or the cluster's", parse_gpus, kWhole, kLast},
}};

/// Reads the values of one axis: a single value, a list, or a range.
class AxisReader {
 public:
  AxisReader(const AxisRow& row, std::vector<AxisValue>& values) : row_(row), values_(values) {}

  void read(const YamlNode& node) {
    if (node.is_list()) {
      for (const YamlNode& item : node.items()) add(item, row_.parse(item));
    } else if (node.is_map()) {
      read_range(node);
    } else {
      add(node, row_.parse(node));
    }
    if (values_.empty()) node.fail("has no values; give at least one, or leave the axis out");
  }

 private:
  /// Reads a range: {from: 1Gbps, to: 64Gbps, times: 2}, {from: 1us, to: 9us, step: 2us}, or {from:
  /// 1Gbps, to: 100Gbps, points: 9, scale: log}.
  void read_range(const YamlNode& node) {
    if (!row_.numeric()) {
      node.fail(fmt::format("takes one value or a list ({}), no range", row_.help));
    }
    node.expect_keys({"from", "to", "times", "step", "points", "scale"});
    const AxisValue from = bound(node.at("from"));
    const AxisValue to = bound(node.at("to"));
    if (*to.number < *from.number) {
      node.fail("the range ends before it begins: exchange 'from' and 'to'");
    }
    if (node.has("times") + node.has("step") + node.has("points") != 1) {
      node.fail(
          "a range needs one of 'times' (a factor from value to value), 'step' (a difference) and "
          "'points' (how many values)");
    }
    if (node.has("scale") && !node.has("points")) {
      node.at("scale").fail("applies to a range with 'points'; leave it out");
    }
    if (node.has("points")) return read_points(node, *from.number, *to.number);
    read_changes(node, *from.number, *to.number);
  }

  /// Reads a range with a step or factor. Uses only additions and multiplications, so that all
  /// compilers give the same values.
  void read_changes(const YamlNode& node, double from, double to) {
    const auto times = node.find("times");
    const auto step = node.find("step");
    const double change = times ? times->number() : *bound(*step).number;
    if (times && change <= 1) times->fail("must be more than 1, or the range never ends");
    if (step && change <= 0) step->fail("must be more than 0, or the range never ends");
    if (times && from <= 0) node.fail("a range with 'times' cannot begin at 0");
    // If rounding moved the last value past the end, it counts as the end.
    const double last = to * (1 + 1e-12);
    double value = from;
    for (std::size_t i = 0; value <= last; ++i) {
      if (i == kMaxValues) node.fail(fmt::format("makes more than {} values", kMaxValues));
      add_number(node, value);
      value = times ? value * change : from + static_cast<double>(i + 1) * change;
    }
  }

  /// Reads a range of evenly spaced values or logarithms. Values between the ends are rounded to
  /// distinct whole numbers or to six digits, so that logarithms agree on all machines.
  void read_points(const YamlNode& node, double from, double to) {
    const auto count = node.at("points").integer(2, static_cast<std::int64_t>(kMaxValues));
    const auto scale = node.find("scale");
    const std::string kind = scale ? scale->text() : "linear";
    if (kind != "linear" && kind != "log") {
      scale->fail(fmt::format("must be linear or log, got {}", io::quote(kind)));
    }
    if (from == to) node.fail("a range with 'points' needs two ends; give the one value alone");
    if (kind == "log" && from <= 0) node.fail("a range with scale log cannot begin at 0");
    std::optional<double> last;
    for (std::int64_t i = 0; i < count; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(count - 1);
      double value = kind == "log" ? from * std::pow(to / from, share) : from + share * (to - from);
      value = io::parse_number(fmt::format("{:.6g}", value), row_.name);
      if (row_.numbers == AxisNumbers::kWhole) value = std::round(value);
      if (i == 0) value = from;
      if (i == count - 1) value = to;
      if (value != last) add_number(node, value);
      last = value;
    }
  }

  AxisValue bound(const YamlNode& node) const {
    AxisValue value = row_.parse(node);
    if (!value.number) node.fail("must be a number to bound a range");
    return value;
  }

  void add_number(const YamlNode& node, double number) {
    if (row_.numbers == AxisNumbers::kWhole &&
        number != static_cast<double>(static_cast<std::int64_t>(number))) {
      node.fail(fmt::format("the range comes to {}, which is not whole; list the values", number));
    }
    add(node, number_value(node, number));
  }

  void add(const YamlNode& node, AxisValue value) {
    if (!seen_.insert(value.text).second) {
      node.fail(fmt::format("{} is given twice; each value makes points of its own",
                            io::quote(value.text)));
    }
    values_.push_back(std::move(value));
  }

  const AxisRow& row_;
  std::vector<AxisValue>& values_;
  std::set<std::string> seen_;
};

void require_known_axes(const YamlNode& root) {
  std::vector<std::string_view> known = {"schema"};
  for (const AxisRow& row : kAxisRows) known.push_back(row.name);
  for (const auto& [key, value] : root.entries()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    value.named("axis " + io::quote(key))
        .fail("there is none of that name" + io::suggestion(key, known));
  }
}

AxisValue fallback(const AxisRow& row) {
  AxisValue value{std::string(row.fallback), std::nullopt, 0};
  if (row.numeric() && !row.fallback.empty() && row.fallback != kAsPlanned) {
    value.number = io::parse_number(row.fallback, row.name);
  }
  return value;
}

/// Sets the number of nodes from the cluster files, if the spec has no axis nodes and they agree.
void take_nodes_of_clusters(SweepSpec& spec) {
  AxisValue& nodes = spec.values[kNodes].front();
  if (nodes.line > 0) return;
  std::set<std::uint32_t> said;
  for (const AxisValue& cluster : spec.values[kCluster]) {
    try {
      if (cluster.text.empty()) return;
      const auto of_file = costs::nodes_of_cluster(spec.path(cluster));
      if (!of_file) return;
      said.insert(*of_file);
    } catch (const io::InputError&) {
      return;  // reported when the file is read again
    }
  }
  if (said.size() != 1) return;
  nodes = {fmt::format("{}", *said.begin()), static_cast<double>(*said.begin()), 0};
}

/// Refuses specs with more than kMaxPoints points. The message lists the lengths of the axes.
void require_sensible_size(const SweepSpec& spec) {
  double product = 1;
  std::string lengths;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const std::size_t length = spec.values[axis].size();
    product *= static_cast<double>(length);
    if (length < 2) continue;
    lengths += fmt::format("{}{} {}", lengths.empty() ? "" : " × ", length, kAxisRows[axis].name);
  }
  if (product <= static_cast<double>(kMaxPoints)) return;
  throw io::InputError(
      spec.file, 0,
      fmt::format("{} make {:.3g} points, more than the {} that one sweep may have; "
                  "shorten an axis or write several specs",
                  lengths, product, kMaxPoints));
}

/// Refuses unknown algorithms and untrusted programs.
void require_algorithms(SweepSpec& spec) {
  for (AxisValue& value : spec.values[kAlgorithm]) {
    try {
      value.text = plans::trusted_algorithm(value.text, spec.trust);
      kernels::make_codec(value.text);
    } catch (const std::invalid_argument& error) {
      spec.fail(kAlgorithm, value, error.what());
    } catch (const io::InputError& error) {
      spec.fail(kAlgorithm, value, error.what());
    }
  }
}

/// An axis for a parameter of the algorithm or schedule that another axis names.
struct ParameterAxis {
  Axis axis;
  std::string_view parameter;
};
constexpr std::array kOfAlgorithms = {ParameterAxis{kRank, "rank"},
                                      ParameterAxis{kRatio, kernels::kDensity}};
constexpr std::array kOfSchedules = {ParameterAxis{kSteps, "steps"},
                                     ParameterAxis{kFragments, "fragments"},
                                     ParameterAxis{kReshard, "reshard"}};

std::string with_parameters(const SweepSpec& spec, const Point& point, Axis named,
                            std::span<const ParameterAxis> parameters) {
  std::string text = spec.values[named][point[named]].text;
  for (const auto& [axis, parameter] : parameters) {
    const std::string& value = spec.values[axis][point[axis]].text;
    if (!value.empty()) text = kernels::with_parameter(text, parameter, value);
  }
  return text;
}

/// Calls `make` for every combination of an axis and its parameters' axes. If it throws
/// std::invalid_argument, reports that at the last of these axes that the spec gives.
void require_parameters(const SweepSpec& spec, Axis named,
                        std::span<const ParameterAxis> parameters,
                        const std::function<void(const Point& point)>& make) {
  Point point{};
  std::vector<Axis> turning = {named};
  for (const ParameterAxis& row : parameters) turning.push_back(row.axis);
  const bool given = std::ranges::any_of(
      parameters, [&](const ParameterAxis& row) { return spec.values[row.axis].front().line > 0; });
  for (bool more = given; more;) {
    try {
      make(point);
    } catch (const std::invalid_argument& error) {
      Axis culprit = named;
      for (const Axis axis : turning) {
        if (spec.values[axis][point[axis]].line > 0 && axis != named) culprit = axis;
      }
      spec.fail(culprit, spec.values[culprit][point[culprit]], error.what());
    }
    more = false;
    for (const Axis axis : turning) {
      more = ++point[axis] < spec.values[axis].size();
      if (more) break;
      point[axis] = 0;
    }
  }
}

void require_parameters(const SweepSpec& spec) {
  require_parameters(spec, kAlgorithm, kOfAlgorithms,
                     [&](const Point& point) { kernels::make_codec(algorithm(spec, point)); });
  require_parameters(spec, kSchedule, kOfSchedules,
                     [&](const Point& point) { casync::Schedule::parse(schedule(spec, point)); });
}

}  // namespace

std::span<const AxisRow> axes() { return kAxisRows; }

std::string algorithm(const SweepSpec& spec, const Point& point) {
  return with_parameters(spec, point, kAlgorithm, kOfAlgorithms);
}

std::string schedule(const SweepSpec& spec, const Point& point) {
  return with_parameters(spec, point, kSchedule, kOfSchedules);
}

bool gives_schedule(const SweepSpec& spec) {
  return std::ranges::any_of(std::array{kSchedule, kSteps, kFragments, kReshard},
                             [&](Axis axis) { return spec.values[axis].front().line > 0; });
}

std::int64_t SweepSpec::points() const {
  std::int64_t product = 1;
  for (const auto& axis : values) product *= static_cast<std::int64_t>(axis.size());
  return product;
}

std::string SweepSpec::path(const AxisValue& value) const {
  if (value.text.find_first_of("/.") == std::string::npos) return value.text;
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / value.text;
  return std::filesystem::is_regular_file(beside, error) ? beside.string() : value.text;
}

void SweepSpec::fail(Axis axis, const AxisValue& value, const std::string& message) const {
  throw io::InputError(
      file, value.line,
      fmt::format("{} {}: {}", kAxisRows[axis].name, io::quote(value.text), message));
}

namespace {

SweepSpec read(const YamlNode& root, const std::string& file, const plans::Trust& trust) {
  require_known_axes(root);
  root.expect_schema("hipress.sweep/1");
  SweepSpec spec{.file = file, .values = {}, .trust = trust};
  root.at("model");
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const AxisRow& row = kAxisRows[axis];
    if (const auto node = root.find(row.name)) {
      AxisReader(row, spec.values[axis]).read(*node);
    } else {
      spec.values[axis].push_back(fallback(row));
    }
  }
  take_nodes_of_clusters(spec);
  require_sensible_size(spec);
  require_algorithms(spec);
  require_parameters(spec);
  return spec;
}

}  // namespace

SweepSpec read_sweep(const std::string& file, const plans::Trust& trust) {
  return read(YamlNode::load(file), file, trust);
}

SweepSpec parse_sweep(const std::string& text, const std::string& name, const plans::Trust& trust) {
  return read(YamlNode::parse(text, name), name, trust);
}

Point point(const SweepSpec& spec, std::int64_t index) {
  Point point;
  for (std::size_t axis = kAxes; axis-- > 0;) {
    const auto length = static_cast<std::int64_t>(spec.values[axis].size());
    point[axis] = static_cast<std::uint32_t>(index % length);
    index /= length;
  }
  return point;
}

}  // namespace hipress::sweep
