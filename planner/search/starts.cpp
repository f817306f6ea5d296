#include "planner/search/starts.hpp"

#include <algorithm>
#include <array>

#include "planner/bound/bound.hpp"
#include "planner/rules/alone.hpp"
#include "planner/search/greedy.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

Candidate first_options(const StartContext& context) {
  return {context.scheme, std::vector<std::uint16_t>(context.choices.gradients.size(), 0)};
}

/// Option of gradient g with this algorithm and the K nearest to N; 0 if it has no such option.
std::uint16_t nearest(const StartContext& context, std::size_t g, std::int8_t algorithm) {
  const std::vector<casync::Decision>& options = context.choices.gradients[g];
  std::uint16_t best = 0;
  for (std::uint16_t i = 0; i < options.size(); ++i) {
    if (options[i].algorithm != algorithm) continue;
    const auto nodes = static_cast<std::int32_t>(context.problem.nodes);
    const auto distance = [&](std::uint16_t option) {
      return std::abs(options[option].partitions - nodes);
    };
    if (options[best].algorithm != algorithm || distance(i) < distance(best)) best = i;
  }
  return best;
}

/// Compresses every gradient of at least `elements` elements with one algorithm.
Candidate compressed_from(const StartContext& context, std::int8_t algorithm,
                          std::int64_t elements) {
  Candidate candidate = first_options(context);
  for (std::size_t g = 0; g < candidate.options.size(); ++g) {
    const bool large = context.problem.model.gradients[g].elements >= elements;
    const std::int8_t raw = context.choices.gradients[g].front().algorithm;
    candidate.options[g] = nearest(context, g, large ? algorithm : raw);
  }
  return candidate;
}

std::vector<Candidate> none(const StartContext& context) {
  return {compressed_from(context, casync::kRaw, models::kMaxElements + 1)};
}

std::vector<Candidate> thresholds(const StartContext& context) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < context.choices.algorithms.size(); ++i) {
    for (const std::int64_t elements : {1, 1 << 12, 1 << 15, 1 << 18, 1 << 21}) {
      candidates.push_back(compressed_from(context, static_cast<std::int8_t>(i), elements));
    }
  }
  return candidates;
}

/// Candidates with those decisions of the baselines that are in the option set.
std::vector<Candidate> of_baselines(const StartContext& context) {
  std::vector<Candidate> candidates;
  Problem problem = context.problem;
  problem.topology = context.choices.schemes[context.scheme].topology;
  for (const BaselineRow& baseline : baselines()) {
    if (baseline.compresses && sends_raw_alone(problem.topology)) continue;
    const casync::Plan plan = baseline.make(problem);
    Candidate candidate = first_options(context);
    for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
      casync::Decision decision = plan.decisions[g];
      if (decision.algorithm != casync::kRaw) {
        const auto& name = plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
        const auto found = plans::find_algorithm(context.choices.algorithms, name);
        if (!found) continue;
        decision.algorithm = *found;
      }
      const std::int32_t option = context.neighbourhoods.find(g, decision);
      if (option >= 0) candidate.options[g] = static_cast<std::uint16_t>(option);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::vector<Candidate> greedy(const StartContext& context) {
  return {greedy_candidate(context.problem, context.evaluator, context.scheme, context.stop,
                           context.evaluations)};
}

/// Takes each gradient's cheapest option, for several prices of port time and codec time: the best
/// options send least if ports are the bottleneck, and code least if codecs are.
std::vector<Candidate> prices(const StartContext& context) {
  std::vector<Candidate> candidates;
  for (const double price : {0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98}) {
    Candidate candidate = first_options(context);
    for (std::size_t g = 0; g < candidate.options.size(); ++g) {
      double least = 0;
      for (std::uint16_t option = 0; option < context.choices.gradients[g].size(); ++option) {
        const Evaluator::Load load = context.evaluator.load(context.scheme, g, option);
        const double cost = price * load.port + (1 - price) * load.codec;
        if (option > 0 && cost >= least) continue;
        least = cost;
        candidate.options[g] = option;
      }
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

/// The option with the largest weight for each gradient, in the linear program of the lower bound.
std::vector<Candidate> of_bound(const StartContext& context) {
  Choices choices = context.choices;
  choices.schemes = {context.choices.schemes[context.scheme]};
  if (topology_without_bound(choices)) return {};
  const Bound bound = lower_bound(context.problem.model, *context.problem.machines, choices);
  if (bound.options.empty()) return {};
  return {{context.scheme, bound.options}};
}

constexpr std::array kStarts = {
    Start{"prices", "each gradient's cheapest option at some prices of ports and codecs", prices},
    Start{"none", "nothing compressed", none},
    Start{"bound", "suggestions of the lower bound on all plans", of_bound, true},
    Start{"thresholds", "compressed from some sizes on, with each algorithm", thresholds},
    Start{"baselines", "decisions of the baselines, SeCoPa's among them", of_baselines},
    Start{"greedy", "one gradient after the other", greedy},
};

}  // namespace

std::span<const Start> starts() { return kStarts; }

}  // namespace hipress::planner
