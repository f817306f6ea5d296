#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/yaml.hpp"
#include "models/wrap.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"

namespace hipress::plans {
namespace {

/// A named plan: compresses gradients of at least `threshold` elements with `algorithm`.
struct NamedPlan {
  std::string algorithm;
  std::int64_t threshold = 1;
};

constexpr std::string_view kThreshold = "threshold";
/// Threshold of "threshold" without a number, as in SeCoPa's own tool.
constexpr std::int64_t kDefaultThreshold = 262144;
/// A threshold above every gradient's number of elements.
constexpr std::int64_t kNever = models::kMaxElements + 1;

std::optional<NamedPlan> parse_name(std::string_view text, const PlanContext& context) {
  if (text == "none") return NamedPlan{context.algorithm, kNever};
  if (text == "all") return NamedPlan{context.algorithm};
  if (text == kThreshold) return NamedPlan{context.algorithm, kDefaultThreshold};
  if (text.starts_with(kThreshold) && text[kThreshold.size()] == ':') {
    const std::int64_t threshold = io::parse_integer(text.substr(kThreshold.size() + 1),
                                                     "plan threshold: its number of elements", 1);
    return NamedPlan{context.algorithm, threshold};
  }
  if (kernels::names_algorithm(text)) return NamedPlan{std::string(text)};
  return std::nullopt;
}

ResolvedPlan make_named(const NamedPlan& named, const PlanContext& context) {
  PlanBuilder builder(context);
  for (std::size_t g = 0; g < context.model.gradients.size(); ++g) {
    const bool compress = context.model.gradients[g].elements >= named.threshold;
    std::int8_t algorithm = compress ? builder.algorithm(named.algorithm) : casync::kRaw;
    if (!builder.refusal_of(algorithm, g).empty()) algorithm = casync::kRaw;
    builder.decide(g, algorithm, static_cast<std::int32_t>(context.nodes));
  }
  return builder.take();
}

/// Throws InputError, which lists the named plans, unless `path` looks like a path or is a file.
void require_file(const std::string& path, const PlanContext& context) {
  const bool looks_like_a_path = path.find_first_of("/.") != std::string::npos;
  if (looks_like_a_path || io::is_file(path)) return;
  const std::string others = context.other_names.empty() ? "" : ", " + context.other_names;
  const std::string algorithms = kernels::algorithm_names();
  const std::string all = fmt::format("none,all,threshold{},{}", others, algorithms);
  std::vector<std::string_view> names;
  for (std::size_t start = 0; start < all.size();) {
    const std::size_t end = std::min(all.find(',', start), all.size());
    names.push_back(std::string_view(all).substr(start, end - start));
    start = all.find_first_not_of(", ", end);
  }
  throw io::InputError(
      fmt::format("plan {} is neither a file nor a named plan{}named plans are none, all, "
                  "threshold[:ELEMENTS]{} and algorithms ({})",
                  io::quote(path), io::before_known(path, names), others, algorithms));
}

}  // namespace

bool is_named_plan(const std::string& path_or_name, const PlanContext& context) {
  return parse_name(path_or_name, context).has_value();
}

ResolvedPlan resolve_plan(const std::string& path_or_name, const PlanContext& context) {
  if (const auto named = parse_name(path_or_name, context)) return make_named(*named, context);
  require_file(path_or_name, context);
  return io::is_yaml_name(path_or_name) ? read_plan_yaml(path_or_name, context)
                                        : read_plan_text(path_or_name, context);
}

std::optional<std::uint32_t> nodes_of_plan(const std::string& path_or_name) {
  if (!io::is_yaml_name(path_or_name)) return std::nullopt;
  const auto nodes = io::YamlNode::load(path_or_name).find("nodes");
  if (!nodes) return std::nullopt;
  return static_cast<std::uint32_t>(nodes->integer(1, UINT32_MAX));
}

void wrap_as_planned(const std::string& path_or_name, models::Model& model) {
  if (!io::is_yaml_name(path_or_name)) return;
  const auto rule = io::YamlNode::load(path_or_name).find("wrap");
  if (!rule) return;
  const std::string text = rule->text();
  try {
    models::wrap(text, model);
  } catch (const io::InputError& error) {
    constexpr std::string_view kField = "`wrap`";
    std::string_view why = error.what();
    if (why.starts_with(kField)) why.remove_prefix(kField.size());
    rule->fail(std::string(why.substr(std::min(why.size(), why.find_first_not_of(": ")))));
  }
}

std::string title(const std::string& path_or_name, const casync::Plan& plan) {
  const std::string name = std::filesystem::path(path_or_name).filename().string();
  const bool sharded = plan.schedule.row().sharded;
  const std::string how =
      sharded ? fmt::format("{} by {}", plan.schedule.text(), plan.shards_by) : plan.topology;
  return fmt::format("plan {}, {}, N = {}", name, how, plan.nodes);
}

std::optional<std::string> schedule_of_plan(const std::string& path_or_name) {
  if (!io::is_yaml_name(path_or_name)) return std::nullopt;
  const auto schedule = io::YamlNode::load(path_or_name).find("schedule");
  if (!schedule) return std::nullopt;
  try {
    return casync::Schedule::parse(schedule->text()).text();
  } catch (const std::invalid_argument& error) {
    schedule->fail(error.what());
  }
}

std::optional<std::string> topology_of_plan(const std::string& path_or_name) {
  if (!io::is_yaml_name(path_or_name)) return std::nullopt;
  const auto topology = io::YamlNode::load(path_or_name).find("topology");
  if (!topology) return std::nullopt;
  try {
    return std::string(casync::find_topology(topology->text()).name);
  } catch (const std::invalid_argument& error) {
    topology->fail(error.what());
  }
}

}  // namespace hipress::plans
