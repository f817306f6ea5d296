#include "sim/folding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"

namespace hipress::sim {
namespace {

Picoseconds iteration_of(const Scenario& scenario, casync::SliceLength length) {
  casync::PlannedModel even = casync::with_even_slices(scenario.model, scenario.plan, length);
  Scenario changed = scenario;
  changed.model = std::move(even.model);
  changed.plan = std::move(even.plan);
  return iteration_time(changed, expand(changed, casync::Folding::kFolded));
}

}  // namespace

std::string difference_between_nodes(const costs::Cluster& cluster) {
  const std::vector<double>& speeds = cluster.compute_speed;
  const auto other = std::adjacent_find(speeds.begin(), speeds.end(), std::not_equal_to<>());
  if (other != speeds.end()) {
    return fmt::format("nodes {} and {} compute at different speeds", other - speeds.begin(),
                       other - speeds.begin() + 1);
  }
  if (!costs::is_uniform(cluster)) {
    return "nodes differ in which others share their host or rack";
  }
  if (cluster.link.burst_bytes > 0)
    return "links have bursts, which flows take one after the other";
  return cluster.cores_per_host > 0 ? "nodes share the cores of hosts" : "";
}

Fold parse_fold(std::string_view name) {
  if (name == "auto") return Fold::kExactly;
  if (name == "never") return Fold::kNever;
  if (name == "always") return Fold::kAlways;
  throw io::InputError(
      fmt::format("unknown way to fold '{}'; known are auto, never, always", name));
}

ExpandedGraph expand(const Scenario& scenario, Fold fold) {
  using casync::Foldability;
  const auto whole = [&](std::string why) {
    return ExpandedGraph{expand(scenario), true, std::move(why)};
  };
  if (fold == Fold::kNever) return whole("not asked for");
  if (scenario.plan.nodes == 1) return whole("there is one node");
  Foldability verdict = casync::foldable(scenario.model, scenario.plan);
  if (scenario.jitter) {
    verdict = {Foldability::kImpossible, "every node draws its own jitter"};
  } else if (std::string why = difference_between_nodes(scenario.cluster); !why.empty()) {
    verdict = {Foldability::kImpossible, std::move(why)};
  }
  if (fold == Fold::kAlways && verdict.kind == Foldability::kImpossible) {
    throw io::InputError("the graph cannot be folded: " + verdict.why);
  }
  if (fold == Fold::kExactly && verdict.kind != Foldability::kExact) return whole(verdict.why);
  return {expand(scenario, casync::Folding::kFolded), verdict.kind == Foldability::kExact, ""};
}

FoldingBounds folding_bounds(const Scenario& scenario) {
  return {iteration_of(scenario, casync::SliceLength::kShortest),
          iteration_of(scenario, casync::SliceLength::kLongest)};
}

}  // namespace hipress::sim
