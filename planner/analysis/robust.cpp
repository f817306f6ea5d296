#include "planner/analysis/robust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "casync/folding.hpp"
#include "io/error.hpp"
#include "planner/problem/budget.hpp"
#include "sim/graph_size.hpp"
#include "sim/parallel.hpp"

namespace hipress::planner {
namespace {

constexpr std::uint32_t kMinReplicas = 8;  // number to simulate before a candidate is dropped
constexpr std::size_t kRobustFinalists = 4;
constexpr double kMaxTasksOfJob = 8e6;  // largest graph to simulate

/// Iterations of one plan in the replicas simulated so far.
class Trial {
 public:
  Trial(const Problem& problem, const TimedPlan& plan, const Uncertainty& uncertainty)
      : problem_(problem), uncertainty_(uncertainty) {
    AffordableScenario how =
        affordable_scenario(problem.model, plan.plan, *problem.machines, plan.transfer_order);
    // All nodes are simulated on the requested network, without approximations.
    how.scenario.network = problem.machines->network;
    how.scenario.cluster = problem.machines->cluster;
    how.scenario.jitter = uncertainty.jitter;
    how.scenario.draws.seed = uncertainty.seed;
    scenario_ = std::move(how.scenario);
    possible_ = how.possible && tasks(plan.plan) <= kMaxTasksOfJob;
  }

  bool possible() const { return possible_; }

  void run_until(std::uint32_t replicas) {
    const auto first = static_cast<std::uint32_t>(times_s_.size());
    if (first >= replicas) return;
    const casync::TaskGraph graph = sim::expand(scenario_, sim::Fold::kExactly).graph;
    times_s_.resize(replicas);
    sim::run_parallel(replicas - first, problem_.limits.jobs, [&](std::size_t i, unsigned) {
      const std::uint32_t replica = first + static_cast<std::uint32_t>(i);
      sim::Scenario one = scenario_;
      one.cluster =
          with_bandwidth(*problem_.machines, bandwidth_factor(uncertainty_, replica)).cluster;
      one.draws.replica = replica;
      times_s_[replica] = casync::to_seconds(sim::iteration_time(one, graph));
    });
  }

  ReplicaTimes spread() const {
    std::vector<double> sorted = times_s_;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t count = sorted.size();
    const auto percentile = [&](std::size_t percent) {
      return sorted[(percent * count + 99) / 100 - 1];
    };
    return {static_cast<std::uint32_t>(count),
            std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(count),
            percentile(50), percentile(90)};
  }

 private:
  double tasks(const casync::Plan& plan) const {
    if (kind_of(plan.schedule) == JobKind::kAveraging) {
      return casync::whole_tasks(problem_.model, plan);
    }
    const casync::Folding folding = sim::choose_folding(scenario_, sim::Fold::kExactly).folding;
    return sim::graph_size(scenario_, folding).tasks;
  }

  const Problem& problem_;
  const Uncertainty& uncertainty_;
  sim::Scenario scenario_;
  bool possible_ = false;
  std::vector<double> times_s_;
};

}  // namespace

double bandwidth_factor(const Uncertainty& uncertainty, std::uint32_t replica) {
  const std::uint64_t draw = sim::mix(sim::mix(uncertainty.seed) ^ replica);
  const double share = static_cast<double>(draw >> 11) * 0x1p-53;
  return 1 + uncertainty.bandwidth * (2 * share - 1);
}

Machines with_bandwidth(const Machines& machines, double factor) {
  Machines changed = machines;
  const auto scale = [&](costs::LinkCosts& link) {
    link.bandwidth *= factor;
    link.bandwidth_both_ways *= factor;
  };
  scale(changed.cluster.link);
  if (changed.cluster.host_link) scale(*changed.cluster.host_link);
  if (changed.cluster.site) scale(changed.cluster.site->link);
  changed.cluster.gpu_link.bandwidth *= factor;
  return changed;
}

RobustChoice choose_robust(const Problem& problem, std::vector<RobustCandidate> candidates,
                           const Uncertainty& uncertainty) {
  RobustChoice choice;
  std::vector<Trial> trials;
  for (RobustCandidate& candidate : candidates) {
    const bool known = std::any_of(
        choice.candidates.begin(), choice.candidates.end(),
        [&](const RobustCandidate& other) { return same_plan(other.plan, candidate.plan); });
    if (known) continue;
    Trial trial(problem, candidate.plan, uncertainty);
    if (!trial.possible()) {
      if (!choice.candidates.empty()) continue;
      throw io::InputError(
          "`robust` simulates all nodes again and again, and there are too many tasks for that: "
          "take fewer nodes");
    }
    trials.push_back(std::move(trial));
    choice.candidates.push_back(std::move(candidate));
  }
  const std::uint32_t all = std::max(1u, uncertainty.replicas);
  const std::uint32_t few = std::min(all, std::max(kMinReplicas, all / 4));
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto simulate = [&](std::size_t i, std::uint32_t replicas) {
    trials[i].run_until(replicas);
    choice.candidates[i].spread = trials[i].spread();
  };
  for (const std::size_t i : order) simulate(i, few);
  const auto better = [&](std::size_t a, std::size_t b) {
    return choice.candidates[a].spread.p90_s < choice.candidates[b].spread.p90_s;
  };
  std::stable_sort(order.begin(), order.end(), better);
  order.resize(std::min(order.size(), kRobustFinalists));
  order.push_back(0);
  for (const std::size_t i : order) simulate(i, all);
  choice.best = *std::min_element(order.rbegin(), order.rend(), better);
  return choice;
}

std::vector<RobustCandidate> robust_candidates(const Problem& problem, const SearchRow& search,
                                               const TimedPlan& nominal,
                                               const std::vector<RobustCandidate>& others,
                                               const Uncertainty& uncertainty) {
  constexpr double kShare = 0.25;  // share of the budget
  std::vector<RobustCandidate> candidates = {{"nominal", nominal}};
  candidates.insert(candidates.end(), others.begin(), others.end());
  for (const double change : {-uncertainty.bandwidth, uncertainty.bandwidth}) {
    if (change == 0) continue;
    const Machines machines = with_bandwidth(*problem.machines, 1 + change);
    Problem other = problem;
    other.machines = &machines;
    other.limits = share_of(problem.limits, kShare);
    other.limits.progress = {};
    SearchResult found = search.search(other);
    candidates.push_back({fmt::format("for {:+.0f} % bandwidth", 100 * change),
                          {std::move(found.plan), found.transfer_order, 0}});
  }
  return candidates;
}

}  // namespace hipress::planner
