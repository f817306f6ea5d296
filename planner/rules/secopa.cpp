// SeCoPa (HiPress, SOSP 2021) decides every gradient on its own. For each number of partitions K,
// raw and compressed, it adds up the costs of a chain of gather, broadcast and codec steps, and
// takes the lowest sum. It assumes that partitions run in parallel for free, and ignores backward
// and contention, which the simulator models.

#include "planner/rules/secopa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "io/error.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

/// Cost of one gradient in partitions of x elements. Terms are added in the order written, so that
/// plans equal the published ones byte by byte.
struct Formula {
  std::string_view topology;
  bool by_steps;  ///< steps cost the same for any N
  double (*raw)(const SecopaCosts& costs, int nodes, double x);
  double (*compressed)(const SecopaCosts& costs, int nodes, int partitions, double x);
};

double ps_raw(const SecopaCosts& costs, int, double x) {
  return costs.raw.gather(x) + costs.raw.broadcast(x);
}

double ps_compressed(const SecopaCosts& costs, int nodes, int partitions, double x) {
  const int encodes = std::min(partitions + 1, nodes);
  const int decodes = std::min(nodes - 1 + partitions, 2 * (nodes - 1));
  return costs.compressed.gather(x) + costs.compressed.broadcast(x) + encodes * costs.encode(x) +
         decodes * costs.decode(x);
}

double ring_raw(const SecopaCosts& costs, int nodes, double x) {
  return 2 * (nodes - 1) * costs.raw.send(x);
}

double ring_compressed(const SecopaCosts& costs, int nodes, int, double x) {
  return 2 * (nodes - 1) * costs.compressed.send(x) + nodes * costs.encode(x) +
         nodes * costs.decode(x);
}

/// Cost of a compressed all-gather: every node processes all partitions, one after the other.
double allgather_compressed(const SecopaCosts& costs, int nodes, int partitions, double x) {
  return partitions *
         (costs.encode(x) + (nodes - 1) * costs.compressed.send(x) + nodes * costs.decode(x));
}

constexpr std::array kFormulas = {Formula{"ps", false, ps_raw, ps_compressed},
                                  Formula{"ring", true, ring_raw, ring_compressed},
                                  Formula{"allgather", true, ring_raw, allgather_compressed}};

const Formula& find_formula(std::string_view topology) {
  const auto found = std::ranges::find(kFormulas, topology, &Formula::topology);
  if (found != kFormulas.end()) return *found;
  std::vector<std::string_view> names;
  for (const Formula& formula : kFormulas) names.push_back(formula.topology);
  throw io::InputError(fmt::format("search secopa has formulas for {}, not for {}",
                                   fmt::join(names, " and "), io::quote(topology)));
}

/// Every K up to this one is tried. Of larger K, only powers of two and N are.
constexpr int kMaxOfAll = 1 << 14;

int next(int partitions, int nodes) {
  if (partitions < kMaxOfAll) return partitions + 1;
  return partitions < nodes ? std::min(2 * partitions, nodes) : nodes + 1;
}

/// Lowest cost over K from 1 to N, the first of equals.
template <typename CostOfPartitions>
SecopaChoice cheapest(bool compress, int nodes, CostOfPartitions cost_of) {
  SecopaChoice best = {compress, 1, cost_of(1)};
  for (int partitions = 2; partitions <= nodes; partitions = next(partitions, nodes)) {
    const double cost = cost_of(partitions);
    if (cost < best.cost) best = {compress, partitions, cost};
  }
  return best;
}

/// Diagnostics about the costs used.
std::vector<std::string> diagnostics_of(const Problem& problem) {
  if (problem.nodes == 1) return {"a job of one node sends nothing: nothing is compressed"};
  const costs::Profile* profile = problem.profile;
  const std::vector<int> fitted = !profile ? published_nodes() : fitted_nodes(profile->fan_in);
  const std::string interpolation =
      fitted.empty() ? std::string() : describe_interpolation(problem.nodes, fitted);
  std::vector<std::string> diagnostics;
  if (problem.nodes > static_cast<std::uint32_t>(kMaxOfAll)) {
    diagnostics.push_back(
        fmt::format("beyond {} partitions, only powers of two and N were tried", kMaxOfAll));
  }
  if (find_formula(problem.topology).by_steps) {
    if (!interpolation.empty()) {
      diagnostics.push_back("topology " + problem.topology +
                            " costs the same per message with any number of nodes: nothing was "
                            "interpolated or extrapolated");
    }
    return diagnostics;
  }
  if (!interpolation.empty()) diagnostics.push_back(interpolation);
  if (profile && (profile->fan_in.empty() || profile->fan_out.empty())) {
    diagnostics.push_back("profile " + io::quote(profile->name) +
                          " lacks fits of fan-in and fan-out: derived from its link as latency + "
                          "(N-1)·(overhead + bytes/bandwidth)");
  }
  return diagnostics;
}

}  // namespace

bool secopa_knows(std::string_view topology) {
  return std::ranges::find(kFormulas, topology, &Formula::topology) != kFormulas.end();
}

SecopaChoice choose(const SecopaCosts& costs, std::string_view topology, std::uint32_t nodes,
                    std::int64_t elements) {
  const Formula& formula = find_formula(topology);
  const int count = static_cast<int>(nodes);
  if (count == 1) return {};
  const auto size = static_cast<double>(elements);
  const SecopaChoice raw =
      cheapest(false, count, [&](int k) { return formula.raw(costs, count, size / k); });
  const SecopaChoice compressed =
      cheapest(true, count, [&](int k) { return formula.compressed(costs, count, k, size / k); });
  return compressed.cost < raw.cost ? compressed : raw;
}

SearchResult search_secopa(const Problem& problem) {
  const std::vector<std::string> names = of_slices(problem.algorithms);
  if (names.empty()) {
    throw io::InputError(fmt::format(
        "search secopa has no formulas for algorithms that send factors of whole gradients ({}): "
        "allow another one, or take `search` timeline with a profile that has their costs",
        fmt::join(problem.algorithms, ", ")));
  }
  const std::string& name = first_lossy(names);
  const plans::PlanContext context = {problem.model, problem.topology, problem.nodes, name};
  plans::PlanBuilder builder(context);
  const SecopaCosts costs = problem.nodes == 1 ? SecopaCosts{}
                            : problem.profile
                                ? measured_costs(*problem.profile, algorithm(name), problem.nodes)
                                : published_costs(problem.nodes);
  // Choices by number of elements, since each choice may try more than 2^14 values of K.
  std::unordered_map<std::int64_t, SecopaChoice> choices;
  for (std::size_t g = 0; g < problem.model.gradients.size(); ++g) {
    const std::int64_t elements = problem.model.gradients[g].elements;
    const auto [known, is_new] = choices.try_emplace(elements);
    if (is_new) known->second = choose(costs, problem.topology, problem.nodes, elements);
    const SecopaChoice& choice = known->second;
    builder.decide(g, choice.compress ? builder.algorithm(name) : casync::kRaw, choice.partitions);
  }
  SearchResult result = {.plan = builder.take().plan, .diagnostics = diagnostics_of(problem)};
  if (names.size() < problem.algorithms.size()) {
    result.diagnostics.emplace_back(
        "search secopa has no formulas for algorithms that send factors of whole gradients: they "
        "are left out");
  }
  return result;
}

}  // namespace hipress::planner
