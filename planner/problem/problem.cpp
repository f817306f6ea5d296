#include "planner/problem/problem.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "casync/topology.hpp"
#include "kernels/codec/codec.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {

bool allows(const Problem& problem, const models::Gradient& gradient,
            const std::string& algorithm) {
  return algorithm == plans::cast_of(gradient.dtype) ||
         std::find(problem.algorithms.begin(), problem.algorithms.end(), algorithm) !=
             problem.algorithms.end();
}

JobKind kind_of(const casync::Schedule& schedule) {
  if (schedule.row().sharded) return JobKind::kSharding;
  return schedule == casync::Schedule() ? JobKind::kAveraging : JobKind::kLocalUpdates;
}

bool allows(const Problem& problem, const casync::Plan& plan) {
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    for (const std::int8_t index :
         {plan.decisions[g].algorithm, plan.gather_of(static_cast<std::uint32_t>(g))}) {
      const casync::Algorithm* const used = casync::algorithm_at(plan.algorithms, index);
      if (used != nullptr && !allows(problem, problem.model.gradients[g], used->name)) return false;
    }
  }
  return true;
}

std::vector<std::string> topologies_of(const Problem& problem) {
  if (problem.topology != "best") return {problem.topology};
  const bool sparse = std::ranges::any_of(problem.algorithms, [](const std::string& name) {
    return kernels::make_codec(name)->traits().sparse;
  });
  std::vector<std::string> names;
  for (const casync::Topology* topology : casync::topologies_for(casync::Operation::kMean)) {
    using Form = casync::Topology::Form;
    const bool may = topology->form == Form::kAny || (sparse && topology->form == Form::kEncoded);
    if (may) names.emplace_back(topology->name);
  }
  return names;
}

bool sends_raw_alone(const std::string& topology) {
  return topology != "best" &&
         casync::find_topology(topology).form == casync::Topology::Form::kWhole;
}

std::string raw_topology_of(const casync::Plan& plan) {
  return std::string(casync::topologies_of(plan.topology, plan.raw_topology).raw->name);
}

casync::Plan in_one_topology(casync::Plan plan) {
  const bool compresses = std::any_of(
      plan.decisions.begin(), plan.decisions.end(),
      [](const casync::Decision& decision) { return decision.algorithm != casync::kRaw; });
  if (compresses || plan.raw_topology.empty()) return plan;
  plan.topology = std::exchange(plan.raw_topology, {});
  if (sends_raw_alone(plan.topology)) plan.decisions.assign(plan.decisions.size(), {});
  return plan;
}

const std::string& first_lossy(const std::vector<std::string>& names) {
  const auto lossy = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return !kernels::make_codec(name)->traits().half_precision;
  });
  return lossy == names.end() ? names.front() : *lossy;
}

std::vector<std::string> of_slices(const std::vector<std::string>& names) {
  std::vector<std::string> kept;
  std::copy_if(names.begin(), names.end(), std::back_inserter(kept),
               [](const std::string& name) { return !is_additive(name); });
  return kept;
}

bool is_additive(const std::string& algorithm) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  return row != nullptr && row->additive;
}

std::string refusal(const Problem& problem, const models::Gradient& gradient,
                    const casync::Algorithm& algorithm) {
  if (!algorithm.is_additive()) {
    return sends_raw_alone(problem.topology) ? problem.topology + " adds gradients as they travel"
                                             : "";
  }
  if (problem.machines != nullptr && problem.machines->cluster.gpus_per_node > 1) {
    return "the GPUs of a node would each have a part of it";
  }
  return plans::refusal(algorithm, gradient);
}

bool may_compress(const Problem& problem) {
  if (problem.nodes == 1 || problem.algorithms.empty()) return false;
  if (kind_of(problem.schedule) == JobKind::kSharding) return true;
  return !sends_raw_alone(problem.topology) ||
         std::any_of(problem.algorithms.begin(), problem.algorithms.end(), is_additive);
}

double steps_of(const Problem& problem, const casync::Plan& plan) {
  if (!problem.learning) return 1;
  const std::optional<StepsRatio> found = problem.learning->of(problem.model, plan);
  return found ? found->ratio : std::numeric_limits<double>::infinity();
}

casync::Algorithm algorithm(const std::string& name) {
  return plans::algorithm_of(name, kernels::make_codec(name));
}

std::int8_t place_in(std::vector<casync::Algorithm>& algorithms, const std::string& name) {
  if (const auto found = plans::find_algorithm(algorithms, name)) return *found;
  return plans::place_in(algorithms, algorithm(name));
}

std::int8_t as_it_is(std::vector<casync::Algorithm>& algorithms, const models::Gradient& gradient) {
  const std::string_view cast = plans::cast_of(gradient.dtype);
  return cast.empty() ? casync::kRaw : place_in(algorithms, std::string(cast));
}

bool has_half_precision(const models::Model& model) {
  return std::any_of(
      model.gradients.begin(), model.gradients.end(),
      [](const models::Gradient& gradient) { return !plans::cast_of(gradient.dtype).empty(); });
}

}  // namespace hipress::planner
