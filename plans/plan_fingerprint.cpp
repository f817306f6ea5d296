#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "io/file.hpp"
#include "models/shape.hpp"
#include "plans/plan_file.hpp"

namespace hipress::plans {

namespace {

std::string aggregation(const char* name, const casync::Aggregation& aggregation) {
  const auto number = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  if (aggregation == casync::Aggregation{}) return {};
  const std::optional<std::int64_t> wait_ps =
      aggregation.wait ? std::optional(aggregation.wait->count()) : std::nullopt;
  return fmt::format("{} {} {} {}\n", name, aggregation.threshold_bytes, number(wait_ps),
                     number(aggregation.limit_bytes));
}

/// Parts of the layout that follow from ready times, which ranks may read from different files: the
/// bulk groups, and the order of all-reduces (without pipelining, the order of all units).
std::string timed_layout(const casync::Layout& layout, bool pipelining) {
  std::string text;
  for (const std::uint32_t index : layout.order) {
    const casync::Unit& unit = layout.units[index];
    const bool collective = unit.topology->form == casync::Topology::Form::kWhole;
    if (layout.is_group(index)) {
      text += fmt::format("group {}\n", fmt::join(unit.members, " "));
    } else if (collective || !pipelining) {
      text += fmt::format("then {}\n", index);
    }
  }
  return text;
}

/// Shape of a gradient with two or more dimensions, which codecs may treat differently from a
/// vector; else empty. A gradient without a shape counts as a vector.
std::string shape(const models::Gradient& gradient) {
  if (gradient.shape.size() < 2) return {};
  return " shape " + models::format_shape(gradient.shape);
}

}  // namespace

std::string plan_fingerprint(const models::Model& model, const casync::Plan& plan) {
  // Each name is preceded by its length, so that different jobs have different texts.
  std::string text = fmt::format("{} {} {}\n{}{}", plan.topology, plan.nodes, plan.raw_topology,
                                 aggregation("bulk", plan.bulk), aggregation("batch", plan.batch));
  if (plan.schedule != casync::Schedule()) {
    text += fmt::format("schedule {}\n", plan.schedule.text());
  }
  if (plan.gpus_per_node > 1) text += fmt::format("gpus {}\n", plan.gpus_per_node);
  if (plan.rails > 1) text += fmt::format("rails {}\n", plan.rails);
  if (plan.root != 0) text += fmt::format("root {}\n", plan.root);
  if (plan.shards_in_messages()) text += fmt::format("shards by {}\n", plan.shards_by);
  if (plan.exchange_within > 1) text += fmt::format("exchange {}\n", plan.exchange_within);
  for (std::uint32_t g = 0; g < plan.gathers.size(); ++g) {
    const casync::Algorithm* const what = casync::algorithm_at(plan.algorithms, plan.gathers[g]);
    if (what != nullptr) text += fmt::format("gather {} {}\n", g, what->name);
  }
  if (!plan.pipelining) text += "no pipelining\n";
  text += timed_layout(casync::make_layout(model, plan), plan.pipelining);
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    const casync::Decision& decision = plan.decisions[g];
    const std::string algorithm =
        decision.algorithm == casync::kRaw
            ? ""
            : plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
    text +=
        fmt::format("{}:{} {} {} {} {}{}\n", gradient.name.size(), gradient.name, gradient.elements,
                    to_string(gradient.dtype), algorithm, decision.partitions, shape(gradient));
  }
  return io::fingerprint(text);
}

}  // namespace hipress::plans
