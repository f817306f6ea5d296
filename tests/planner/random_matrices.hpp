#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "tests/planner/random_problem.hpp"

namespace hipress::planner {

/// A RandomProblem whose gradients are mostly matrices. Its algorithms include low-rank ones, and
/// the profile has costs of their stages. The same seed gives the same problem on every platform.
class RandomMatrices {
 public:
  RandomMatrices(std::uint64_t seed, const RandomProblem::Range& range)
      : random_(seed, range), draws_(seed + 77) {
    const double element_s = random_.profile.codecs.at("onebit").encode.pieces.front().b_s;
    for (models::Gradient& gradient : random_.model.gradients) {
      if (below(4) == 0) continue;
      const auto rows = std::int64_t{1} << (3 + below(8));
      const std::int64_t columns = std::max<std::int64_t>(1, gradient.elements / rows);
      gradient.shape = {rows, columns};
      gradient.elements = rows * columns;
    }
    for (const char* name : {"powersgd", "acpsgd"}) {
      costs::CodecCosts& codec = random_.profile.codecs[name];
      codec.stages = {costs_of_stage(element_s)};
      if (name[0] == 'p') codec.stages.push_back(costs_of_stage(element_s));
      codec.decode_stages = costs_of_stage(element_s);
    }
  }

  Problem problem(sim::Network network) {
    Problem problem = random_.problem(network);
    problem.algorithms = {"onebit", "powersgd(rank=1)", "powersgd(rank=4)", "acpsgd(rank=2)",
                          "fp16"};
    return problem;
  }

  models::Model& model() { return random_.model; }
  costs::Cluster& cluster() { return random_.machines.cluster; }
  const Machines& machines() const { return random_.machines; }
  costs::Profile& profile() { return random_.profile; }
  std::uint64_t below(std::uint64_t bound) { return draws_() % bound; }

 private:
  double share() { return static_cast<double>(draws_() >> 11) * 0x1p-53; }
  costs::StageCosts costs_of_stage(double element_s) {
    return {.a_s = below(3) == 0 ? 0 : 2e-5 * share(),
            .per_element_s = element_s * share(),
            .per_element_rank_s = 0.3 * element_s * share(),
            .per_value_s = element_s * share(),
            .per_value_rank_s = element_s * share()};
  }

  RandomProblem random_;
  std::mt19937_64 draws_;
};

}  // namespace hipress::planner
