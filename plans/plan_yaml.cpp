#include "plans/plan_yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/version.hpp"
#include "io/yaml.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::plans {
namespace {

constexpr std::string_view kSchema = "hipress.plan/1";
constexpr std::string_view kNone = "none";  ///< the algorithm of a raw gradient
constexpr int kDigits = 15;                 ///< digits of times: exact to a picosecond up to 100 s

/// Runs call(), and turns its std::invalid_argument into an InputError at the node's line.
template <class Call>
void located(const io::YamlNode& node, const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    node.fail(error.what());
  }
}

/// Throws unless topology and number of nodes are the context's.
void require_agreement(const io::YamlNode& root, const PlanContext& context) {
  const io::YamlNode topology = root.at("topology");
  std::string_view own;
  located(topology, [&] { own = casync::find_topology(topology.text()).name; });
  const std::string_view asked = casync::find_topology(context.topology).name;
  if (own != asked) {
    topology.fail(fmt::format("the plan is for {}, not {}; ask for `topology` {}", io::quote(own),
                              asked, own));
  }
  const io::YamlNode nodes = root.at("nodes");
  if (nodes.integer(1) != context.nodes) {
    nodes.fail(
        fmt::format("the plan is for {} nodes, not {}; ask for `nnodes` {}, or plan anew for {}",
                    nodes.text(), context.nodes, nodes.text(), context.nodes));
  }
}

/// Reads `operation`, and `root`, which only broadcasts may have.
void read_operation(const io::YamlNode& root, casync::Plan& plan) {
  const casync::Operation own = casync::find_topology(plan.topology).operation;
  if (const auto operation = root.find("operation")) {
    if (operation->text() != casync::to_string(own)) {
      operation->fail(fmt::format("topology {} is for operation {}, got {}", plan.topology,
                                  casync::to_string(own), io::quote(operation->text())));
    }
  }
  const auto from = root.find("root");
  if (!from) return;
  if (own != casync::Operation::kBroadcast) {
    from->fail(fmt::format("only a broadcast has a root, and topology {} does not broadcast",
                           plan.topology));
  }
  const std::int64_t number = from->integer(0);
  if (number >= plan.nodes) {
    from->fail(fmt::format("root {} is not one of the plan's {} nodes, which count from 0", number,
                           plan.nodes));
  }
  plan.root = static_cast<std::uint32_t>(number);
}

/// Throws if a broadcast's tensor has another dtype than in the model.
void require_dtype(const io::YamlNode& item, const models::Model& model, const std::string& name) {
  const auto dtype = item.find("dtype");
  if (!dtype) return;
  for (const models::Gradient& gradient : model.gradients) {
    if (gradient.name != name || dtype->text() == models::to_string(gradient.dtype)) continue;
    dtype->fail(fmt::format("gradient {} is {} in model {}; plan it anew", io::quote(name),
                            models::to_string(gradient.dtype), io::quote(model.name)));
  }
}

/// Throws if the predicted time or the lower bound is not a duration. Neither is used otherwise.
void require_times(const io::YamlNode& root) {
  constexpr double kLongestRun_s = 53 * 24 * 3600.0;  // limit of the simulator
  for (const std::string_view key : {"predicted_iteration", "lower_bound"}) {
    if (const auto time = root.find(key)) time->duration(kLongestRun_s);
  }
}

/// Parses a gradient's entry. The row has a view of `name`.
PlanRow parse_item(const io::YamlNode& item, const std::string& name) {
  const io::YamlNode named = item.named("gradient " + io::quote(name));
  PlanRow row;
  row.line = item.line();
  row.name = name;
  row.elements = named.at("elements").integer(1, models::kMaxElements);
  row.algorithm = named.at("algorithm").text();
  if (row.algorithm.empty())
    named.at("algorithm").fail("must be an algorithm's name or none, got ''");
  if (row.algorithm == kNone) row.algorithm.clear();
  row.partitions = named.at("K").integer(1, kMaxPartitions);
  if (const auto gather = named.find("gather")) row.gather = gather->text();
  if (row.gather == kNone) row.gather.clear();
  return row;
}

void write_gradients(YAML::Emitter& out, const models::Model& model, const casync::Plan& plan) {
  const bool broadcast =
      casync::find_topology(plan.topology).operation == casync::Operation::kBroadcast;
  out << YAML::Key << "gradients" << YAML::Value << YAML::BeginSeq;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    const casync::Decision& decision = plan.decisions[g];
    const std::string algorithm =
        is_raw(gradient, plan, decision)
            ? std::string(kNone)
            : plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
    out << YAML::Flow << YAML::BeginMap;
    out << YAML::Key << "name" << YAML::Value << gradient.name;
    out << YAML::Key << "elements" << YAML::Value << gradient.elements;
    if (broadcast && gradient.dtype != models::Dtype::kFloat32) {
      out << YAML::Key << "dtype" << YAML::Value << models::to_string(gradient.dtype);
    }
    out << YAML::Key << "algorithm" << YAML::Value << algorithm;
    out << YAML::Key << "K" << YAML::Value << decision.partitions;
    if (const std::int8_t gather = plan.gather_of(static_cast<std::uint32_t>(g));
        gather != casync::kRaw) {
      out << YAML::Key << "gather" << YAML::Value
          << plan.algorithms[static_cast<std::size_t>(gather)].name;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

casync::Aggregation read_aggregation(const io::YamlNode& node) {
  casync::Aggregation aggregation;
  if (const auto threshold = node.find("threshold"))
    aggregation.threshold_bytes = threshold->size();
  if (const auto wait = node.find("wait")) {
    aggregation.wait = casync::from_seconds(wait->duration(models::kLongestTime_s));
  }
  if (const auto limit = node.find("limit")) aggregation.limit_bytes = limit->size();
  for (const std::string_view bound : {"wait", "limit"}) {
    if (node.has(bound) && !node.has("threshold")) {
      node.at(bound).fail("needs threshold, the size below which messages are put together");
    }
  }
  return aggregation;
}

/// Reads a list of bulk groups, as input indices of gradients.
std::vector<std::vector<std::uint32_t>> read_groups(const io::YamlNode& list,
                                                    const models::Model& model) {
  std::unordered_map<std::string_view, std::uint32_t> index;
  for (std::uint32_t g = 0; g < model.gradients.size(); ++g) index[model.gradients[g].name] = g;
  std::vector<int> lines(model.gradients.size(), 0);  // by gradient: line that names it
  std::vector<std::vector<std::uint32_t>> groups;
  for (const io::YamlNode& group : list.items()) {
    std::vector<std::uint32_t>& members = groups.emplace_back();
    for (const io::YamlNode& item : group.items()) {
      const std::string name = item.text();
      const auto found = index.find(name);
      if (found == index.end()) {
        item.fail(
            fmt::format("gradient {} is not in model {}", io::quote(name), io::quote(model.name)));
      }
      int& line = lines[found->second];
      if (line != 0) {
        item.fail(fmt::format("gradient {} is in a bulk group already, in line {}; name it once",
                              io::quote(name), line));
      }
      line = item.line();
      members.push_back(found->second);
    }
  }
  return groups;
}

/// Reads the schedule. Keys that are read later depend on the units that it synchronises.
void read_schedule(const io::YamlNode& root, const models::Model& model, casync::Plan& plan) {
  const auto schedule = root.find("schedule");
  if (!schedule) return;
  located(*schedule, [&] {
    plan.schedule = casync::Schedule::parse(schedule->text());
    plan.schedule.timetable(model);
  });
}

void read_rails(const io::YamlNode& root, casync::Plan& plan) {
  const auto rails = root.find("rails");
  if (!rails) return;
  plan.rails = static_cast<std::uint32_t>(rails->integer(1, plan.nodes));
  if (plan.nodes % plan.rails == 0) return;
  rails->fail(
      fmt::format("is the number of nodes per host, and {} does not divide {}: give a divisor",
                  plan.rails, plan.nodes));
}

/// Reads the keys that only plans of a sharded schedule have.
void read_shards(const io::YamlNode& root, const models::Model& model, casync::Plan& plan) {
  const bool sharded = plan.schedule.row().sharded;
  if (const auto within = root.find("exchange_within")) {
    if (!sharded)
      within->fail("applies to sharded schedules, such as schedule: fsdp; leave it out");
    plan.exchange_within = static_cast<std::uint32_t>(within->integer(1, plan.nodes));
    const std::uint32_t shards = plan.schedule.timetable(model).sharding->shards(plan.nodes);
    if (shards % plan.exchange_within != 0) {
      within->fail(fmt::format("must divide the {} nodes that have all shards, got {}", shards,
                               plan.exchange_within));
    }
  }
  if (const auto shards_by = root.find("shards_by")) {
    if (!sharded)
      shards_by->fail("applies to sharded schedules, such as schedule: fsdp; leave it out");
    located(*shards_by, [&] { plan.shards_by = casync::known_shards_by(shards_by->text()); });
  }
  if (!sharded && !plan.gathers.empty()) {
    root.at("gradients")
        .fail("gather applies to sharded schedules, such as schedule: fsdp; leave it out");
  }
  if (sharded) located(root.at("schedule"), [&] { casync::make_layout(model, plan); });
}

/// Reads the topology of raw gradients, bulk groups and batches.
void read_aggregations(const io::YamlNode& root, const models::Model& model, casync::Plan& plan) {
  if (const auto raw = root.find("raw")) {
    located(*raw, [&] { plan.raw_topology = casync::find_topology(raw->text()).name; });
  }
  if (const auto batch = root.find("batch")) {
    batch->expect_keys({"threshold", "wait", "limit"});
    plan.batch = read_aggregation(*batch);
  }
  if (const auto bulk = root.find("bulk")) {
    bulk->expect_keys({"threshold", "wait", "limit", "groups"});
    plan.bulk = read_aggregation(*bulk);
    if (const auto groups = bulk->find("groups")) plan.bulk_groups = read_groups(*groups, model);
    located(*bulk, [&] { casync::make_layout(model, plan); });
  }
}

DenseFallback read_dense(const io::YamlNode& node) {
  node.expect_keys({"above", "algorithm", "K"});
  DenseFallback dense;
  dense.above = node.at("above").number(0, 1);
  const io::YamlNode algorithm = node.at("algorithm");
  dense.algorithm = algorithm.text();
  if (dense.algorithm != kNone && !is_cast(dense.algorithm)) {
    algorithm.fail(fmt::format("must be none, fp16 or bf16, got {}", io::quote(dense.algorithm)));
  }
  dense.partitions = static_cast<std::int32_t>(node.at("K").integer(1, kMaxPartitions));
  return dense;
}

void write_aggregation(YAML::Emitter& out, const casync::Aggregation& aggregation) {
  const auto entry = [&](const char* key, const std::string& value) {
    out << YAML::Key << key << YAML::Value << value;
  };
  if (aggregation.threshold_bytes > 0) {
    entry("threshold", fmt::format("{}B", aggregation.threshold_bytes));
  }
  if (aggregation.wait) entry("wait", fmt::format("{}ps", aggregation.wait->count()));
  if (aggregation.limit_bytes) entry("limit", fmt::format("{}B", *aggregation.limit_bytes));
}

void write_aggregations(YAML::Emitter& out, const models::Model& model, const casync::Plan& plan) {
  if (!plan.raw_topology.empty()) out << YAML::Key << "raw" << YAML::Value << plan.raw_topology;
  if (plan.bulk != casync::Aggregation{} || !plan.bulk_groups.empty()) {
    out << YAML::Key << "bulk" << YAML::Value << YAML::BeginMap;
    write_aggregation(out, plan.bulk);
    if (!plan.bulk_groups.empty()) {
      out << YAML::Key << "groups" << YAML::Value << YAML::BeginSeq;
      for (const std::vector<std::uint32_t>& group : plan.bulk_groups) {
        out << YAML::Flow << YAML::BeginSeq;
        for (const std::uint32_t member : group) out << model.gradients[member].name;
        out << YAML::EndSeq;
      }
      out << YAML::EndSeq;
    }
    out << YAML::EndMap;
  }
  if (plan.batch != casync::Aggregation{}) {
    out << YAML::Key << "batch" << YAML::Value << YAML::BeginMap;
    write_aggregation(out, plan.batch);
    out << YAML::EndMap;
  }
}

ResolvedPlan resolve(const io::YamlNode& root, const std::string& file,
                     const PlanContext& context) {
  root.expect_keys({"schema",         "model",     "topology",
                    "nodes",          "rails",     "predicted_iteration",
                    "lower_bound",    "search",    "network",
                    "profile",        "tool",      "raw",
                    "transfer_order", "bulk",      "batch",
                    "gradients",      "operation", "root",
                    "dense",          "schedule",  "exchange_within",
                    "shards_by",      "wrap"});
  root.at("schema");
  root.expect_schema(kSchema);
  require_agreement(root, context);
  require_times(root);
  PlanMatcher matcher(file, context);
  for (const io::YamlNode& item : root.at("gradients").items()) {
    item.expect_keys({"name", "elements", "algorithm", "K", "dtype", "gather"});
    const std::string name = item.at("name").text();
    matcher.add(parse_item(item, name));
    require_dtype(item, context.model, name);
  }
  ResolvedPlan resolved = matcher.take();
  read_operation(root, resolved.plan);
  read_rails(root, resolved.plan);
  read_schedule(root, context.model, resolved.plan);
  read_aggregations(root, context.model, resolved.plan);
  read_shards(root, context.model, resolved.plan);
  if (const auto dense = root.find("dense")) resolved.dense = read_dense(*dense);
  if (const auto order = root.find("transfer_order")) {
    located(*order, [&] { resolved.transfer_order = casync::parse_transfer_order(order->text()); });
  }
  return resolved;
}

}  // namespace

ResolvedPlan read_plan_yaml(const std::string& file, const PlanContext& context) {
  return resolve(io::YamlNode::load(file), file, context);
}

ResolvedPlan parse_plan_yaml(const std::string& text, const std::string& name,
                             const PlanContext& context) {
  return resolve(io::YamlNode::parse(text, name), name, context);
}

std::string plan_yaml(const models::Model& model, const casync::Plan& plan,
                      const PlanReport& report) {
  YAML::Emitter out;
  for (const casync::Algorithm& algorithm : plan.algorithms) {
    if (!algorithm.own_optimizer) continue;
    out << YAML::Comment(kernels::optimizer_note(algorithm.name)) << YAML::Newline;
  }
  out << YAML::BeginMap;
  const auto entry = [&](const char* key, const auto& value) {
    out << YAML::Key << key << YAML::Value << value;
  };
  entry("schema", std::string(kSchema));
  entry("model", model.name);
  entry("topology", plan.topology);
  entry("nodes", plan.nodes);
  if (plan.rails > 1) entry("rails", plan.rails);
  if (casync::find_topology(plan.topology).operation == casync::Operation::kBroadcast) {
    entry("operation", casync::to_string(casync::Operation::kBroadcast));
    entry("root", plan.root);
  }
  if (report.predicted_iteration_s) {
    entry("predicted_iteration", io::format_duration(*report.predicted_iteration_s, kDigits));
  }
  if (report.lower_bound_s) {
    entry("lower_bound", io::format_duration(*report.lower_bound_s, kDigits));
  }
  entry("search", report.search);
  entry("network", report.network);
  entry("profile", report.profile);
  entry("tool", io::version());
  if (report.transfer_order != casync::TransferOrder::kReady) {
    entry("transfer_order", casync::to_string(report.transfer_order));
  }
  if (plan.schedule != casync::Schedule()) entry("schedule", plan.schedule.text());
  if (!report.wrap.empty()) entry("wrap", report.wrap);
  if (plan.shards_in_messages()) entry("shards_by", plan.shards_by);
  if (plan.exchange_within > 1) entry("exchange_within", plan.exchange_within);
  write_aggregations(out, model, plan);
  if (report.dense) {
    out << YAML::Key << "dense" << YAML::Value << YAML::Flow << YAML::BeginMap;
    entry("above", fmt::format("{:.4g}", report.dense->above));
    entry("algorithm", report.dense->algorithm);
    entry("K", report.dense->partitions);
    out << YAML::EndMap;
  }
  write_gradients(out, model, plan);
  out << YAML::EndMap;
  return std::string(out.c_str()) + '\n';
}

void write_plan_yaml(const std::string& path, const models::Model& model, const casync::Plan& plan,
                     const PlanReport& report) {
  const std::string text = plan_yaml(model, plan, report);
  io::write_file(path, [&](std::ostream& stream) { stream << text; });
}

}  // namespace hipress::plans
