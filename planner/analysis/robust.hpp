#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/search.hpp"
#include "planner/timing/workbench.hpp"
#include "sim/jitter.hpp"

namespace hipress::planner {

/// What a plan cannot count on.
struct Uncertainty {
  std::shared_ptr<const sim::Jitter> jitter = nullptr;  ///< of every task's time; null: none
  double bandwidth = 0;  ///< u: links have a factor between 1−u and 1+u of their bandwidth, all the
                         ///< same in one replica; below 1
  std::uint32_t replicas = 100;  ///< draws that plans are compared on; more: steadier percentiles
  std::uint64_t seed = 0;
};

/// The factor of the links' bandwidth in a replica.
double bandwidth_factor(const Uncertainty& uncertainty, std::uint32_t replica);

/// The machines with every link's bandwidth times `factor`.
Machines with_bandwidth(const Machines& machines, double factor);

/// Iteration times over replicas, in seconds; percentiles are the least time that so many reach.
struct Spread {
  std::uint32_t replicas = 0;
  double mean_s = 0, p50_s = 0, p90_s = 0;
};

struct RobustCandidate {
  std::string name;  ///< "nominal", "all", "for -20 % bandwidth"
  TimedPlan plan;
  Spread spread = {};
};

struct RobustChoice {
  std::vector<RobustCandidate> candidates;  ///< equal plans once; the first is the nominal one
  std::size_t best = 0;                     ///< with the least p90 of those seen in all replicas
};

/// Simulates candidates (the first is the nominal plan) on the network asked for, in the same
/// replicas: all of them in a quarter of the replicas, the best few and the nominal one in all. The
/// same for any number of jobs. io::InputError if the first one's graph is too large.
RobustChoice choose_robust(const Problem& problem, std::vector<RobustCandidate> candidates,
                           const Uncertainty& uncertainty);

/// The nominal plan, the baselines, and plans that `search` makes for the least and the most
/// bandwidth within a quarter of Problem::limits each.
std::vector<RobustCandidate> robust_candidates(const Problem& problem, const SearchRow& search,
                                               const TimedPlan& nominal,
                                               const std::vector<RobustCandidate>& others,
                                               const Uncertainty& uncertainty);

}  // namespace hipress::planner
