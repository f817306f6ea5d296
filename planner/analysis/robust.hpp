#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/search.hpp"
#include "planner/timing/workbench.hpp"
#include "sim/jitter.hpp"

namespace hipress::planner {

/// Random variation between replicas of a simulation.
struct Uncertainty {
  std::shared_ptr<const sim::Jitter> jitter = nullptr;  ///< jitter of every task's time; null: none
  /// Range u of the bandwidth, below 1: each replica has one factor from 1−u to 1+u for all links.
  double bandwidth = 0;
  std::uint32_t replicas = 100;  ///< replicas per plan; more: steadier percentiles
  std::uint64_t seed = 0;        ///< seed of the draws
};

/// Factor for the bandwidth of all links in a replica.
double bandwidth_factor(const Uncertainty& uncertainty, std::uint32_t replica);

/// Copy of the machines with every link's bandwidth multiplied by `factor`.
Machines with_bandwidth(const Machines& machines, double factor);

/// Iteration times over replicas, in seconds. At least 90 % do not exceed the 90th percentile.
struct ReplicaTimes {
  std::uint32_t replicas = 0;  ///< number simulated
  double mean_s = 0, p50_s = 0, p90_s = 0;
};

/// A plan that is compared with others in all replicas.
struct RobustCandidate {
  std::string name;  ///< "nominal", "all", "for -20 % bandwidth"
  TimedPlan plan;
  ReplicaTimes spread = {};
};

/// The candidates with the percentiles of their times, and the choice.
struct RobustChoice {
  std::vector<RobustCandidate> candidates;  ///< without duplicates; the first is the nominal plan
  std::size_t best = 0;  ///< index of the lowest p90 among candidates with all replicas
};

/// Simulates the candidates on the requested network, all with the same random draws; the first is
/// the nominal plan. Simulates a quarter of the replicas for every candidate, the other replicas
/// only for the nominal plan and the best few candidates. The result does not depend on the number
/// of jobs. Throws io::InputError if the nominal plan's graph is too large.
RobustChoice choose_robust(const Problem& problem, std::vector<RobustCandidate> candidates,
                           const Uncertainty& uncertainty);

/// Candidates for choose_robust(): the nominal plan, `others` (the baselines), and plans that
/// `search` finds for the lowest and the highest bandwidth, each with a quarter of Problem::limits.
std::vector<RobustCandidate> robust_candidates(const Problem& problem, const SearchRow& search,
                                               const TimedPlan& nominal,
                                               const std::vector<RobustCandidate>& others,
                                               const Uncertainty& uncertainty);

}  // namespace hipress::planner
