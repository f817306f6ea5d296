#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "costs/cluster.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// A random problem with 4 to 12 gradients, two of which hold half of the bytes, on 2 to 16 nodes.
/// The same seed gives the same problem on every platform. The profile is v100-100g or sosp21 in
/// turn, the topology ps or ring in turn. Either of the two large gradients may be ready first or
/// last. Raw communication takes 0.3 to 10 times as long as backward.
class FewLarge {
 public:
  FewLarge(std::uint64_t seed, sim::Network network, std::uint32_t most_gradients = 12,
           std::uint32_t most_nodes = 16)
      : draws_(seed),
        profile_(costs::read_profile(seed % 2 == 0 ? "v100-100g" : "sosp21")),
        topology_(seed / 2 % 2 == 0 ? "ps" : "ring") {
    const std::uint32_t nodes = 2 + below(most_nodes - 1);
    make_model(4 + below(most_gradients - 3), nodes);
    machines_.cluster = costs::cluster_from_profile(profile_, nodes);
    machines_.network = network;
  }
  FewLarge(const FewLarge&) = delete;
  FewLarge& operator=(const FewLarge&) = delete;

  /// Problem with hipress-plan's algorithms. It points into this object.
  Problem problem() const {
    return {.model = model_,
            .topology = topology_,
            .nodes = machines_.cluster.nodes,
            .algorithms = {"onebit", "fp16"},
            .profile = &profile_,
            .machines = &machines_};
  }

  std::string describe() const {
    return profile_.name + " " + topology_ + ", N " + std::to_string(machines_.cluster.nodes) +
           ", " + std::to_string(model_.gradients.size()) + " gradients";
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(draws_() % bound); }
  double share() { return static_cast<double>(draws_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low * std::pow(high / low, share()); }

  void make_model(std::uint32_t gradients, std::uint32_t nodes) {
    const double elements = between(5e6, 300e6);
    const double ratio = between(0.3, 10);
    const double bytes = 8 * elements * (nodes - 1) / nodes;
    const double backward_s = bytes / profile_.link.bandwidth / ratio;
    // Share of the first large gradient in the half of the bytes that both have together.
    const double first = 0.3 + 0.4 * share();
    std::vector<double> weights;
    double sum = 0;
    for (std::uint32_t g = 2; g < gradients; ++g) {
      weights.push_back(between(1e-3, 1));
      sum += weights.back();
    }
    std::vector<double> parts = {first / 2, (1 - first) / 2};
    for (const double weight : weights) parts.push_back(weight / sum / 2);
    for (std::size_t g = 0; g < parts.size(); ++g) {
      model_.gradients.push_back({.name = fmt::format("g{}", g),
                                  .elements = static_cast<std::int64_t>(elements * parts[g]),
                                  .ready_s = std::round(backward_s * share() * 1e9) * 1e-9});
    }
    model_.forward_s = std::round(backward_s / 2 * 1e9) * 1e-9;
  }

  std::mt19937_64 draws_;
  models::Model model_;
  costs::Profile profile_;
  std::string topology_;
  Machines machines_{profile_, {}};
};

}  // namespace hipress::planner
