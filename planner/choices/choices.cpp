#include "planner/choices/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "casync/factors.hpp"
#include "casync/topology.hpp"
#include "io/error.hpp"
#include "planner/rules/alone.hpp"
#include "plans/plan_builder.hpp"
#include "sim/message_sizes.hpp"

namespace hipress::planner {
namespace {

constexpr std::int64_t kMinManyBytes = 64 << 10;  // smallest slice if K > N

/// Values of K to try for a gradient.
std::vector<std::int32_t> ladder(const Problem& problem, std::int64_t elements) {
  const auto nodes = static_cast<std::int32_t>(problem.nodes);
  std::vector<std::int32_t> counts;
  if (elements == 0) return counts;
  if (!folded_only(problem)) {
    for (std::int32_t k = 1; k < nodes; k *= 2) {
      if (k == 1 || elements / k >= casync::kSliceWord) counts.push_back(k);
    }
  }
  if (counts.empty() || elements / nodes >= casync::kSliceWord) counts.push_back(nodes);
  if (nodes == 1) return counts;
  for (const std::int32_t many : {2 * nodes, 4 * nodes}) {
    const std::int64_t slice_bytes = elements / many * static_cast<std::int64_t>(sizeof(float));
    if (many <= plans::kMaxPartitions && slice_bytes >= kMinManyBytes) counts.push_back(many);
  }
  return counts;
}

/// Number of elements that are partitioned: those of the gradient, or of its smallest factor; 0 if
/// no plan compresses it with this algorithm.
std::int64_t sliced(const Problem& problem, const Choices& choices,
                    const models::Gradient& gradient, std::int8_t algorithm) {
  const casync::Algorithm* const what = casync::algorithm_at(choices.algorithms, algorithm);
  if (what != nullptr && !refusal(problem, gradient, *what).empty()) return 0;
  const casync::Factors factors = factors_of(what, gradient);
  const auto smallest = std::ranges::min_element(factors, {}, &casync::FactorSums::values);
  return smallest == factors.end() ? gradient.elements : smallest->values;
}

void add_unless_there(std::vector<casync::Decision>& options, const casync::Decision& decision) {
  if (std::ranges::find(options, decision) == options.end()) options.push_back(decision);
}

/// Adds factors: the only compressed form for topologies that sends_raw_alone().
void add_whole(const Problem& problem, Choices& choices) {
  if (problem.nodes == 1) return;
  for (const std::string& name : problem.algorithms) {
    if (!is_additive(name)) continue;
    const std::int8_t algorithm = place_in(choices.algorithms, name);
    for (std::size_t g = 0; g < choices.gradients.size(); ++g) {
      const models::Gradient& gradient = problem.model.gradients[g];
      const casync::Algorithm& what = choices.algorithms[static_cast<std::size_t>(algorithm)];
      if (refusal(problem, gradient, what).empty()) choices.gradients[g].push_back({algorithm, 1});
    }
  }
}

/// Adds the decisions of a baseline. Its plan has a list of algorithms of its own.
void add_baseline(const Problem& problem, const casync::Plan& plan, Choices& choices) {
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    casync::Decision decision = plan.decisions[g];
    const auto nodes = static_cast<std::int32_t>(problem.nodes);
    if (folded_only(problem) && decision.partitions % nodes != 0) continue;
    if (decision.algorithm != casync::kRaw) {
      const std::string& name = plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
      if (!allows(problem, problem.model.gradients[g], name)) continue;
      decision.algorithm = place_in(choices.algorithms, name);
      const auto place = static_cast<std::size_t>(decision.algorithm);
      if (!refusal(problem, problem.model.gradients[g], choices.algorithms[place]).empty())
        continue;
    }
    add_unless_there(choices.gradients[g], decision);
  }
}

void put_raw_first(const Problem& problem, Choices& choices) {
  for (std::size_t g = 0; g < choices.gradients.size(); ++g) {
    const std::int8_t raw = as_it_is(choices.algorithms, problem.model.gradients[g]);
    std::stable_partition(
        choices.gradients[g].begin(), choices.gradients[g].end(),
        [&](const casync::Decision& decision) { return decision.algorithm == raw; });
  }
}

casync::Picoseconds share_of_backward(const Problem& problem, int part) {
  return casync::from_seconds(models::backward_s(problem.model) / part);
}

/// Batch rules, including off. Only off if only folded plans are affordable: these are simulated
/// from patterns (timing/pattern.hpp), which have no batches.
std::vector<casync::Aggregation> batch_rules(const Problem& problem) {
  std::vector<casync::Aggregation> rules = {{}};
  if (problem.grouping == Grouping::kNone || folded_only(problem)) return rules;
  for (const std::int64_t threshold : {std::int64_t{64} << 10, std::int64_t{1} << 20}) {
    rules.push_back({.threshold_bytes = threshold, .wait = share_of_backward(problem, 64)});
  }
  return rules;
}

std::vector<sim::TransferOrder> orders(const Problem& problem) {
  switch (problem.transfer_order) {
    case OrderChoice::kNeed:
      return {sim::TransferOrder::kNeed};
    case OrderChoice::kBest:
      return {sim::TransferOrder::kReady, sim::TransferOrder::kNeed};
    case OrderChoice::kReady:
      break;
  }
  return {sim::TransferOrder::kReady};
}

/// Topologies of a plan: one for all gradients or, with "best", another one for raw gradients. Raw
/// gradients may always take the library's all-reduce and, if `topology` carries only encoded
/// messages, any other topology. A plan by the library alone is one in which every gradient is raw.
struct Ways {
  std::string topology, raw_topology;
};

std::vector<Ways> ways(const Problem& problem) {
  std::vector<Ways> found;
  for (const std::string& topology : topologies_of(problem)) found.push_back({topology, ""});
  if (problem.topology != "best" || problem.nodes == 1) return found;
  using Form = casync::Topology::Form;
  for (const std::string& topology : topologies_of(problem)) {
    const casync::Topology& row = casync::find_topology(topology);
    for (const casync::Topology* raw : casync::topologies_for(casync::Operation::kMean)) {
      const bool other =
          row.form == Form::kEncoded && raw->form == Form::kAny && raw->name != row.dense;
      if (raw->form == Form::kWhole || other) found.push_back({topology, std::string(raw->name)});
    }
  }
  return found;
}

std::vector<Scheme> make_schemes(const Problem& problem) {
  std::vector<Scheme> schemes;
  for (const casync::Aggregation& batch : batch_rules(problem)) {
    for (const casync::Aggregation& bulk : bulk_rules(problem)) {
      for (const Ways& way : ways(problem)) {
        for (const sim::TransferOrder order : orders(problem)) {
          schemes.push_back({.topology = way.topology,
                             .raw_topology = way.raw_topology,
                             .bulk = bulk,
                             .batch = batch,
                             .transfer_order = order});
        }
      }
    }
  }
  return schemes;
}

}  // namespace

std::vector<casync::Aggregation> bulk_rules(const Problem& problem) {
  std::vector<casync::Aggregation> rules = {{}};
  if (problem.grouping == Grouping::kNone || problem.nodes == 1) return rules;
  std::int64_t largest = 0;
  for (const models::Gradient& gradient : problem.model.gradients) {
    largest = std::max(largest, gradient.elements * models::size_of(gradient.dtype));
  }
  const bool timed = models::backward_s(problem.model) > 0;
  for (std::int64_t kib = 64; kib <= 256 << 10; kib *= 4) {
    const std::int64_t threshold = kib << 10;
    for (const int part : {64, 16, 4, 1}) {
      if (timed) {
        rules.push_back({.threshold_bytes = threshold, .wait = share_of_backward(problem, part)});
      }
    }
    rules.push_back({.threshold_bytes = threshold, .limit_bytes = 4 * threshold});
    if (threshold > largest) break;  // every message is below it
  }
  return rules;
}

bool folded_only(const Problem& problem) {
  return whole_graphs_are_too_large(problem.model, problem.nodes);
}

Choices make_choices(const Problem& problem) {
  Choices choices;
  if (sends_raw_alone(problem.topology)) {
    if (has_half_precision(problem.model)) {
      throw io::InputError(fmt::format(
          "`topology` {} sends gradients as fp32, but the model has some of half precision: take "
          "PS, RING or BEST",
          problem.topology));
    }
    choices.gradients.assign(problem.model.gradients.size(), {casync::Decision{}});
    add_whole(problem, choices);
    choices.schemes = make_schemes(problem);
    return choices;
  }
  for (const std::string& name : problem.algorithms) place_in(choices.algorithms, name);
  for (const models::Gradient& gradient : problem.model.gradients) {
    std::vector<casync::Decision>& options = choices.gradients.emplace_back();
    std::vector<std::int8_t> algorithms = {as_it_is(choices.algorithms, gradient)};
    for (const std::string& name : problem.algorithms) {
      algorithms.push_back(place_in(choices.algorithms, name));
    }
    for (const std::int8_t algorithm : algorithms) {
      if (problem.nodes == 1 && algorithm != algorithms.front()) break;  // no receiver
      const std::int64_t elements = sliced(problem, choices, gradient, algorithm);
      for (const std::int32_t k : ladder(problem, elements)) {
        add_unless_there(options, {algorithm, k});
      }
      if (elements > 0 && elements < gradient.elements) {  // also K = N, which baselines take
        add_unless_there(options, {algorithm, static_cast<std::int32_t>(problem.nodes)});
      }
    }
  }
  for (const std::string& topology : topologies_of(problem)) {
    Problem one = problem;
    one.topology = topology;
    for (const BaselineRow& baseline : baselines()) {
      add_baseline(problem, baseline.make(one), choices);
    }
  }
  if (problem.machines != nullptr) {
    sim::predict_sizes(problem.machines->profile, choices.algorithms);
  }
  put_raw_first(problem, choices);
  choices.schemes = make_schemes(problem);
  return choices;
}

casync::Plan make_plan(const Problem& problem, const Choices& choices, std::size_t scheme,
                       std::span<const std::uint16_t> options) {
  const Scheme& chosen = choices.schemes.at(scheme);
  casync::Plan plan = {.topology = chosen.topology,
                       .nodes = problem.nodes,
                       .algorithms = choices.algorithms,
                       .decisions = {},
                       .raw_topology = chosen.raw_topology,
                       .bulk = chosen.bulk,
                       .batch = chosen.batch};
  if (problem.machines) plan.gpus_per_node = problem.machines->cluster.gpus_per_node;
  for (std::size_t g = 0; g < options.size(); ++g) {
    plan.decisions.push_back(choices.gradients[g].at(options[g]));
  }
  return plan;
}

}  // namespace hipress::planner
