#include "sweep/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "casync/strategy.hpp"
#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "plans/plan_builder.hpp"
#include "sim/simulator.hpp"

namespace hipress::sweep {

using namespace sim;

namespace {

using io::YamlNode;

constexpr std::int64_t kMaxPoints = 1'000'000;
constexpr std::size_t kMaxValues = 100'000;

/// 15 digits, which every decimal number that a spec gives comes back from.
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
    const casync::Strategy& strategy = casync::find_strategy(text);
    if (strategy.operation != casync::Operation::kMean) {
      node.fail(
          fmt::format("sweeps are of gradients that are averaged, and {} broadcasts; take one "
                      "of {}, or plan broadcasts with hipress-plan `job` broadcast",
                      strategy.name, casync::strategy_names(casync::Operation::kMean)));
    }
    return {std::string(strategy.name), std::nullopt, node.line()};
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
    node.fail("is what gradients are compressed with; compress nothing with 'plan: none'");
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

constexpr std::array<AxisRow, kAxes> kAxisRows = {{
    {"model", "model", "shipped models and files: vgg19", "", "required", parse_text, false},
    {"topology", "topology", "what `topology` takes: ring", "ps", "", parse_topology, false},
    {"nodes", "nodes",
     "numbers of nodes N: 16; with a sharded schedule all their GPUs are nodes of the plan", "16",
     "", parse_nodes, true},
    {"plan", "plan",
     "plan files, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made "
     "(below)",
     "all", "", parse_text, false},
    {"algorithm", "algorithm", "what a plan that names none compresses with: onebit", "onebit", "",
     parse_algorithm, false},
    {"partitions", "partitions", "K of every gradient, or 'plan': as the plan says", kAsPlanned, "",
     parse_partitions, true},
    {"compute_time", "compute_time_s", "of forward and backward together, as `compute_time`: 80ms",
     "", "the model's", parse_duration, true},
    {"schedule", "schedule",
     "when gradients are synchronised, as `schedule`: 'local(steps=100)'; baselines are ddp's",
     "ddp", "", parse_schedule, false},
    {"profile", "profile", "shipped profiles and files: sosp21", "sosp21", "", parse_text, false},
    {"cluster", "cluster", "cluster files", "", "as the profile was measured", parse_text, false},
    {"network", "network", "port (one message at a time), fair (max-min)", "fair", "",
     parse_network_name, false},
    {"bandwidth", "bandwidth_bytes_per_s",
     "of the cluster's link (not its host_link and gpu_link), one way and both ways: 25Gbps", "",
     "the cluster's", parse_bandwidth, true},
    {"latency", "latency_s", "of the cluster's link, on the wire: 5us", "", "the cluster's",
     parse_duration, true},
    {"overhead", "overhead_s", "of the cluster's link, that a message costs both its ports: 1us",
     "", "the cluster's", parse_duration, true},
    {"compute_speed", "compute_speed",
     "factor on every node's computation and kernels: 2 is twice as fast", "1", "", parse_factor,
     true},
}};

/// Reads the values of one axis: a single one, a list of them, or a range.
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
  /// {from: 1Gbps, to: 64Gbps, times: 2} or {from: 1us, to: 9us, step: 2us}. Only additions and
  /// multiplications, so every compiler gives the same values.
  void read_range(const YamlNode& node) {
    if (!row_.numeric) {
      node.fail(fmt::format("takes one value or a list ({}), no range", row_.help));
    }
    node.expect_keys({"from", "to", "times", "step"});
    const AxisValue from = bound(node.at("from"));
    const double end = *bound(node.at("to")).number;
    const auto times = node.find("times");
    const auto step = node.find("step");
    if (times.has_value() == step.has_value()) {
      node.fail(
          "a range needs either 'times' (a factor) or 'step' (a difference) from value to value");
    }
    const double change = times ? times->number() : *bound(*step).number;
    if (times && change <= 1) times->fail("must be more than 1, or the range never ends");
    if (step && change <= 0) step->fail("must be more than 0, or the range never ends");
    if (times && *from.number <= 0) node.fail("a range with 'times' cannot begin at 0");
    if (end < *from.number) node.fail("the range ends before it begins: exchange 'from' and 'to'");
    // A last value that rounding put behind the end still counts, as the end.
    const double last = end * (1 + 1e-12);
    double value = *from.number;
    for (std::size_t i = 0; value <= last; ++i) {
      if (i == kMaxValues) node.fail(fmt::format("makes more than {} values", kMaxValues));
      add_number(node, value);
      value = times ? value * change : *from.number + static_cast<double>(i + 1) * change;
    }
  }

  AxisValue bound(const YamlNode& node) const {
    AxisValue value = row_.parse(node);
    if (!value.number) node.fail("must be a number where it bounds a range");
    return value;
  }

  void add_number(const YamlNode& node, double number) {
    const bool whole = row_.name == "nodes" || row_.name == "partitions";
    if (whole && number != static_cast<double>(static_cast<std::int64_t>(number))) {
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
  if (row.numeric && !row.fallback.empty() && row.fallback != kAsPlanned) {
    value.number = io::parse_number(row.fallback, row.name);
  }
  return value;
}

/// Refuses a product that nobody means, and says where it comes from.
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

/// Refuses algorithms that there are not, and programs that nobody vouches for.
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

}  // namespace

std::span<const AxisRow> axes() { return kAxisRows; }

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
  if (const auto schema = root.find("schema"); schema && schema->text() != "hipress.sweep/1") {
    schema->fail(fmt::format("must be hipress.sweep/1, got {}", io::quote(schema->text())));
  }
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
  require_sensible_size(spec);
  require_algorithms(spec);
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
