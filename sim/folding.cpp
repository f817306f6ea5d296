#include "sim/folding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"
#include "sim/message_sizes.hpp"

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

casync::TaskGraph expand(const Scenario& scenario, casync::Folding folding) {
  casync::Plan plan = scenario.plan;
  predict_sizes(scenario.profile, plan.algorithms);
  if (scenario.iterations == 1) return casync::expand(scenario.model, plan, folding);
  return casync::expand_back_to_back(scenario.model, plan, scenario.iterations, folding);
}

std::string difference_between_nodes(const costs::Cluster& cluster) {
  const std::vector<double>& speeds = cluster.compute_speed;
  const auto other = std::adjacent_find(speeds.begin(), speeds.end(), std::not_equal_to<>());
  if (other != speeds.end()) {
    return fmt::format("nodes {} and {} compute at different speeds", other - speeds.begin(),
                       other - speeds.begin() + 1);
  }
  if (!costs::is_uniform(cluster)) {
    return cluster.slow_links.empty() ? "nodes differ in which others share their host or rack"
                                      : "some links are slower than others";
  }
  if (cluster.link.burst_bytes > 0)
    return "links have bursts, which flows take one after the other";
  return cluster.cores_per_host > 0 ? "nodes share the cores of hosts" : "";
}

std::string difference_between_groups(const costs::Cluster& cluster) {
  costs::Cluster flat = cluster;
  flat.host_link.reset();
  flat.racks.clear();
  flat.slow_links.clear();
  flat.link.burst_bytes = 0;
  return difference_between_nodes(flat);
}

Fold parse_fold(std::string_view name) {
  if (name == "auto") return Fold::kExactly;
  if (name == "never") return Fold::kNever;
  if (name == "always") return Fold::kAlways;
  throw io::InputError(
      fmt::format("unknown way to fold {}; known are auto, never, always", io::quote(name)));
}

casync::Foldability foldability(const Scenario& scenario) {
  using casync::Foldability;
  if (scenario.plan.nodes == 1) return {Foldability::kImpossible, "there is one node"};
  if (scenario.jitter) return {Foldability::kImpossible, "every node draws its own jitter"};
  if (scenario.plan.schedule.row().sharded) {
    std::string why = difference_between_groups(scenario.cluster);
    if (!why.empty()) return {Foldability::kImpossible, std::move(why)};
    return casync::foldable(scenario.model, scenario.plan);
  }
  if (std::string why = difference_between_nodes(scenario.cluster); !why.empty()) {
    return {Foldability::kImpossible, std::move(why)};
  }
  return casync::foldable(scenario.model, scenario.plan);
}

FoldingChoice choose_folding(const Scenario& scenario, Fold fold) {
  using casync::Foldability;
  if (fold == Fold::kNever) return {.why_whole = "not asked for"};
  const Foldability verdict = foldability(scenario);
  const bool alone = scenario.plan.nodes == 1;  // one node needs no folding
  if (fold == Fold::kAlways && verdict.kind == Foldability::kImpossible && !alone) {
    throw io::InputError("the graph cannot be folded: " + verdict.why);
  }
  const bool folds = verdict.kind == Foldability::kExact ||
                     (fold == Fold::kAlways && verdict.kind == Foldability::kBounded);
  if (!folds) return {.why_whole = verdict.why};
  return {casync::Folding::kFolded, verdict.kind == Foldability::kExact, ""};
}

ExpandedGraph expand(const Scenario& scenario, Fold fold) {
  FoldingChoice choice = choose_folding(scenario, fold);
  return {expand(scenario, choice.folding), choice.exact, std::move(choice.why_whole)};
}

FoldingBounds folding_bounds(const Scenario& scenario) {
  return {iteration_of(scenario, casync::SliceLength::kShortest),
          iteration_of(scenario, casync::SliceLength::kLongest)};
}

}  // namespace hipress::sim
