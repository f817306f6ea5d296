#include "planner/timing/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

constexpr std::size_t kMaxExactStepsOfBench = 200000;  // largest graph for exact estimates
constexpr int kEstimatesPerTrim = 64;                  // since exact patterns may take much memory

std::uint16_t place_of(std::vector<casync::Decision>& options, const casync::Decision& wanted) {
  const auto found = std::ranges::find(options, wanted);
  const auto place = static_cast<std::uint16_t>(found - options.begin());
  if (found == options.end()) options.push_back(wanted);
  return place;
}

/// Splits groups that were made by hand, if decisions changed: members with the same algorithm stay
/// together. A gradient that remains alone leaves the group.
std::vector<std::vector<std::uint32_t>> regrouped(const casync::Plan& original,
                                                  const std::vector<casync::Decision>& decisions) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (const std::vector<std::uint32_t>& group : original.bulk_groups) {
    std::map<std::int8_t, std::vector<std::uint32_t>> alike;
    for (const std::uint32_t g : group) alike[decisions[g].algorithm].push_back(g);
    for (auto& [algorithm, members] : alike) {
      if (members.size() > 1 || group.size() == 1) groups.push_back(std::move(members));
    }
  }
  return groups;
}

}  // namespace

bool same_plan(const TimedPlan& a, const TimedPlan& b) {
  const casync::Plan& x = a.plan;
  const casync::Plan& y = b.plan;
  return a.transfer_order == b.transfer_order && x.topology == y.topology &&
         x.raw_topology == y.raw_topology && x.bulk == y.bulk && x.batch == y.batch &&
         x.bulk_groups == y.bulk_groups && x.decisions == y.decisions &&
         std::ranges::equal(x.algorithms, y.algorithms, {}, &casync::Algorithm::name,
                            &casync::Algorithm::name);
}

std::string describe_option(const models::Model& model, const casync::Plan& plan, std::size_t g) {
  const casync::Decision& decision = plan.decisions[g];
  if (kind_of(plan.schedule) == JobKind::kSharding) {
    const auto form = [&](std::int8_t index) -> std::string_view {
      if (plans::is_raw(model.gradients[g], plan, {.algorithm = index})) return "raw";
      return plan.algorithms[static_cast<std::size_t>(index)].name;
    };
    return fmt::format("gathered {}, reduced {}",
                       form(plan.gather_of(static_cast<std::uint32_t>(g))),
                       form(decision.algorithm));
  }
  const casync::Algorithm* const algorithm =
      casync::algorithm_at(plan.algorithms, decision.algorithm);
  const std::string name =
      plans::is_raw(model.gradients[g], plan, decision) ? "raw" : algorithm->name;
  const bool by_raw_topology = algorithm == nullptr || algorithm->is_additive();
  if (by_raw_topology && sends_raw_alone(raw_topology_of(plan))) {
    return fmt::format("{}, {}", name, raw_topology_of(plan));
  }
  return fmt::format("{}, K = {}", name, decision.partitions);
}

AffordableScenario required_scenario(const Problem& problem, const TimedPlan& plan,
                                     std::string_view what) {
  AffordableScenario how =
      affordable_scenario(problem.model, plan.plan, *problem.machines, plan.transfer_order);
  if (!how.possible) {
    throw io::InputError(fmt::format("the plan's graph is too large to {}: {}; take fewer nodes",
                                     what, how.diagnostic));
  }
  return how;
}

Coarseness coarseness_of(const models::Gradient& gradient, const casync::Plan& plan,
                         const casync::Decision& decision, const AccuracyOrder& order) {
  if (plans::is_raw(gradient, plan, decision)) return {};
  const casync::Algorithm& algorithm =
      plan.algorithms[static_cast<std::size_t>(decision.algorithm)];
  const casync::TopologyPair pair = casync::topologies_of(plan.topology, plan.raw_topology);
  return order.given_up(algorithm.name, pair.encodings_of(algorithm, plan.nodes));
}

namespace {

/// Largest loss of a gradient, in its gather or its reduction, in a sharded plan.
Coarseness coarseness_of_shards(const Problem& problem, const casync::Plan& plan, std::uint32_t g) {
  const int encodings = plan.exchange_within > 1 ? 2 : 1;
  const auto given_up = [&](std::int8_t index, int times) -> Coarseness {
    if (plans::is_raw(problem.model.gradients[g], plan, {.algorithm = index})) return {};
    const std::string& name = plan.algorithms[static_cast<std::size_t>(index)].name;
    return problem.accuracy.given_up(name, times);
  };
  return std::max(given_up(plan.gather_of(g), 1), given_up(plan.decisions[g].algorithm, encodings));
}

}  // namespace

Coarseness coarseness_of(const Problem& problem, const casync::Plan& plan) {
  const bool in_shards = kind_of(plan.schedule) == JobKind::kSharding;
  Coarseness most;
  for (std::uint32_t g = 0; g < plan.decisions.size(); ++g) {
    most = std::max(most, in_shards ? coarseness_of_shards(problem, plan, g)
                                    : coarseness_of(problem.model.gradients[g], plan,
                                                    plan.decisions[g], problem.accuracy));
  }
  return most;
}

Workbench::Workbench(const Problem& problem, const TimedPlan& plan,
                     const std::vector<const TimedPlan*>& others)
    : problem_(problem), original_(plan.plan), choices_(make_choices(problem)), plan_(add(plan)) {
  for (const TimedPlan* other : others) others_.push_back(add(*other));
  evaluator_.emplace(problem_, choices_);
}

Candidate Workbench::add(const TimedPlan& timed) {
  const casync::Plan& plan = timed.plan;
  Candidate candidate;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    casync::Decision decision = plan.decisions[g];
    if (decision.algorithm != casync::kRaw) {
      decision.algorithm = plans::place_in(
          choices_.algorithms, plan.algorithms[static_cast<std::size_t>(decision.algorithm)]);
    }
    candidate.options.push_back(place_of(choices_.gradients[g], decision));
  }
  Scheme scheme = {.topology = plan.topology,
                   .raw_topology = plan.raw_topology,
                   .bulk = plan.bulk,
                   .batch = plan.batch,
                   .transfer_order = timed.transfer_order};
  const Scheme& first = choices_.schemes.front();
  if (sends_raw_alone(scheme.topology) && !sends_raw_alone(first.topology)) {
    scheme.raw_topology =
        std::exchange(scheme.topology, first.topology);  // so that other options can be compressed
  }
  const auto found = std::find(choices_.schemes.begin(), choices_.schemes.end(), scheme);
  candidate.scheme = static_cast<std::uint32_t>(found - choices_.schemes.begin());
  if (found == choices_.schemes.end()) choices_.schemes.push_back(scheme);
  return candidate;
}

casync::Plan Workbench::make(const Candidate& candidate) const {
  casync::Plan plan = make_plan(problem_, choices_, candidate.scheme, candidate.options);
  plan.bulk_groups = regrouped(original_, plan.decisions);
  plan.pipelining = original_.pipelining;
  return plan;
}

TimedPlan Workbench::timed(const Candidate& candidate, double iteration_s) const {
  return {make(candidate), order(candidate), iteration_s};
}

Coarseness Workbench::coarseness_of(std::size_t g, std::uint16_t option) const {
  const Scheme& scheme = choices_.schemes[plan_.scheme];
  const casync::Plan only = {.topology = scheme.topology,
                             .nodes = problem_.nodes,
                             .algorithms = choices_.algorithms,
                             .decisions = {},
                             .raw_topology = scheme.raw_topology};
  return planner::coarseness_of(problem_.model.gradients[g], only, choices_.gradients[g][option],
                                problem_.accuracy);
}

std::string Workbench::describe(std::size_t g, std::uint16_t option) const {
  const Scheme& scheme = choices_.schemes[plan_.scheme];
  casync::Plan only = {.topology = scheme.topology,
                       .algorithms = choices_.algorithms,
                       .decisions = {},
                       .raw_topology = scheme.raw_topology};
  only.decisions.resize(g + 1);
  only.decisions[g] = choices_.gradients[g][option];
  return describe_option(problem_.model, only, g);
}

PatternGraph Workbench::schedule(const Candidate& candidate) {
  return exact_ ? evaluator_->exact(candidate) : evaluator_->coarse(candidate);
}

bool Workbench::affords_exact(const Candidate& candidate) {
  const bool said_by_options = original_.bulk_groups.empty() && original_.pipelining;
  if (!said_by_options || !evaluator_->can_be_exact(candidate)) return false;
  std::size_t steps = 0;
  for (const PlacedUnit& unit : evaluator_->exact(candidate).units) steps += unit.pattern->count();
  return steps <= kMaxExactStepsOfBench;
}

std::int64_t Workbench::estimate_base(const Candidate& candidate) {
  ++simulations_;
  evaluator_->trim();
  until_trim_ = kEstimatesPerTrim;
  exact_ = affords_exact(candidate);
  base_candidate_ = candidate;
  base_ = timeline_.record(schedule(candidate));
  return base_.iteration;
}

std::int64_t Workbench::estimate(const Candidate& candidate, std::int64_t limit) {
  if (--until_trim_ == 0) estimate_base(Candidate(base_candidate_));
  ++simulations_;
  return timeline_.run(schedule(candidate), limit, &base_);
}

bool Workbench::estimates_are_exact() const {
  return exact_ && !folded_only(problem_) && problem_.machines->network == sim::Network::kPort;
}

std::optional<double> Workbench::time_s(const Candidate& candidate) {
  ++simulations_;
  return affordable_iteration(problem_.model, make(candidate), *problem_.machines, order(candidate))
      .iteration_s;
}

}  // namespace hipress::planner
