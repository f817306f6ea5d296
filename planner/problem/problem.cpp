#include "planner/problem/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/problem/choices.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {

bool allows(const Problem& problem, const models::Gradient& gradient,
            const std::string& algorithm) {
  return algorithm == plans::cast_of(gradient.dtype) ||
         std::find(problem.algorithms.begin(), problem.algorithms.end(), algorithm) !=
             problem.algorithms.end();
}

bool allows(const Problem& problem, const casync::Plan& plan) {
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const std::int8_t algorithm = plan.decisions[g].algorithm;
    if (algorithm == casync::kRaw) continue;
    const std::string& name = plan.algorithms[static_cast<std::size_t>(algorithm)].name;
    if (!allows(problem, problem.model.gradients[g], name)) return false;
  }
  return true;
}

Choices choices_of(const Problem& problem) {
  return problem.choices ? problem.choices(problem) : make_choices(problem);
}

std::vector<std::string> strategies_of(const Problem& problem) {
  if (problem.strategy != "best") return {problem.strategy};
  std::vector<std::string> names;
  for (const casync::Strategy* strategy : casync::strategies_for(casync::Operation::kMean)) {
    if (strategy->form == casync::Strategy::Form::kAny) names.emplace_back(strategy->name);
  }
  return names;
}

bool sends_raw_alone(const std::string& strategy) {
  return strategy != "best" &&
         casync::find_strategy(strategy).form == casync::Strategy::Form::kWhole;
}

const std::string& raw_strategy_of(const casync::Plan& plan) {
  return plan.raw_strategy.empty() ? plan.strategy : plan.raw_strategy;
}

casync::Plan in_one_strategy(casync::Plan plan) {
  const bool compresses = std::any_of(
      plan.decisions.begin(), plan.decisions.end(),
      [](const casync::Decision& decision) { return decision.algorithm != casync::kRaw; });
  if (compresses || plan.raw_strategy.empty()) return plan;
  plan.strategy = std::exchange(plan.raw_strategy, {});
  if (sends_raw_alone(plan.strategy)) plan.decisions.assign(plan.decisions.size(), {});
  return plan;
}

const std::string& first_lossy(const std::vector<std::string>& names) {
  const auto lossy = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return !kernels::make_codec(name)->traits().half_precision;
  });
  return lossy == names.end() ? names.front() : *lossy;
}

void require_one_stage(const std::string& name, const kernels::CodecTraits& traits) {
  if (!traits.staged) return;
  throw io::InputError(
      fmt::format("algorithm {} sends factors of whole gradients, which plans cannot say yet; take "
                  "one that sends messages of slices",
                  io::quote(name)));
}

casync::Algorithm algorithm(const std::string& name) {
  const std::shared_ptr<const kernels::Codec> codec = kernels::make_codec(name);
  require_one_stage(name, codec->traits());
  return plans::algorithm_of(name, codec);
}

}  // namespace hipress::planner
