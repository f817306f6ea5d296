#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/search.hpp"
#include "planner/timing/workbench.hpp"
#include "sim/jitter.hpp"

namespace hipress::planner {

/// What varies from one replica of a simulation to the next.
struct Uncertainty {
  std::shared_ptr<const sim::Jitter> jitter = nullptr;  ///< of every task's time; null: none
  /// u, below 1: in each replica the bandwidth of all links is multiplied by one factor, which is
  /// drawn from 1−u to 1+u.
  double bandwidth = 0;
  std::uint32_t replicas = 100;  ///< that plans are compared on; more: steadier percentiles
  std::uint64_t seed = 0;        ///< of the draws
};

/// The factor by which the bandwidth of all links is multiplied in a replica.
double bandwidth_factor(const Uncertainty& uncertainty, std::uint32_t replica);

/// The machines, with every link's bandwidth multiplied by `factor`.
Machines with_bandwidth(const Machines& machines, double factor);

/// Iteration times over replicas, in seconds. The 90th percentile is the least of them that at
/// least 90 % of the replicas do not exceed.
struct ReplicaTimes {
  std::uint32_t replicas = 0;  ///< that were simulated
  double mean_s = 0, p50_s = 0, p90_s = 0;
};

/// A plan that is compared with others in all replicas.
struct RobustCandidate {
  std::string name;  ///< "nominal", "all", "for -20 % bandwidth"
  TimedPlan plan;
  ReplicaTimes spread = {};
};

/// Candidates with their spreads, and the one to take.
struct RobustChoice {
  std::vector<RobustCandidate> candidates;  ///< without repetitions; the first is the nominal plan
  std::size_t best = 0;  ///< the one with the least p90 among those simulated in all replicas
};

/// Simulates the candidates, of which the first is the nominal plan, on the network asked for. All
/// candidates have the same replicas: a quarter of these is simulated for every candidate, the rest
/// for the nominal plan and the best few others. The result does not depend on the number of jobs.
/// io::InputError if the nominal plan's graph is too large.
RobustChoice choose_robust(const Problem& problem, std::vector<RobustCandidate> candidates,
                           const Uncertainty& uncertainty);

/// Candidates for choose_robust(): the nominal plan, `others` (the baselines), and the plans that
/// `search` finds for the least and for the most bandwidth, each with a quarter of Problem::limits.
std::vector<RobustCandidate> robust_candidates(const Problem& problem, const SearchRow& search,
                                               const TimedPlan& nominal,
                                               const std::vector<RobustCandidate>& others,
                                               const Uncertainty& uncertainty);

}  // namespace hipress::planner
