#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "costs/cluster.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {

/// A random model on random machines. The same seed gives the same problem on every platform. Sizes
/// range over six decades, ready times are random, there are 2 to 64 nodes, and raw communication
/// takes 0.3 to 10 times as long as backward.
class RandomProblem {
 public:
  struct Range {
    std::uint32_t least_gradients = 3, most_gradients = 100;
    std::uint32_t most_nodes = 64;
  };

  RandomProblem(std::uint64_t seed, const Range& range) : draws_(seed) {
    const std::uint32_t nodes = std::uint32_t{1}
                                << (1 + below(std::bit_width(range.most_nodes) - 1));
    const std::uint32_t count =
        range.least_gradients + below(range.most_gradients - range.least_gradients + 1);
    const double backward_s = 0.01 * std::pow(10.0, share());
    std::int64_t elements = 0;
    for (std::uint32_t g = 0; g < count; ++g) {
      const auto size = static_cast<std::int64_t>(32 * std::pow(10.0, 6 * share()));
      model.gradients.push_back({.name = fmt::format("g{}", g),
                                 .elements = size,
                                 .ready_s = std::round(backward_s * share() * 1e9) * 1e-9});
      elements += size;
    }
    make_machines(nodes, elements, backward_s);
  }

  /// Problem on `network`. Problem::machines points into this object.
  Problem problem(sim::Network network) {
    machines.network = network;
    return {.model = model,
            .topology = topology,
            .nodes = machines.cluster.nodes,
            .algorithms = {"onebit", "tbq", "fp16"},
            .profile = &profile,
            .machines = &machines};
  }

  models::Model model;
  costs::Profile profile;
  Machines machines{profile, {}};
  std::string topology;

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(draws_() % bound); }
  double share() { return static_cast<double>(draws_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low * std::pow(high / low, share()); }

  void make_machines(std::uint32_t nodes, std::int64_t elements, double backward_s) {
    topology = below(2) == 0 ? "ps" : "ring";
    const double ratio = between(0.3, 10);  // raw communication relative to backward
    const double bytes = 8.0 * static_cast<double>(elements) * (nodes - 1) / nodes;
    const double bandwidth = bytes / (ratio * backward_s);
    profile.name = "random";
    profile.link = {.overhead_s = between(1e-6, 100e-6),
                    .bandwidth = bandwidth,
                    .bandwidth_both_ways = bandwidth,
                    .latency_s = below(2) == 0 ? 0 : between(1e-6, 50e-6)};
    const double launch_s = between(2e-6, 30e-6);
    // A node encodes, adds and decodes each element once, both in a ring and as one of N servers.
    const double element_s = between(0.03, 3) * backward_s / (3 * static_cast<double>(elements));
    const auto curve = [&](double factor) {
      return costs::Curve{{{0, launch_s, element_s * factor}}, 0};
    };
    profile.codecs["onebit"] = {curve(1.5), curve(0.5), curve(1)};
    profile.codecs["tbq"] = {curve(1.2), curve(0.5), curve(1)};
    profile.codecs["fp16"] = {curve(0.6), curve(0.6), curve(1)};
    profile.merge = curve(1.2);
    machines.cluster = costs::cluster_from_profile(profile, nodes);
  }

  std::mt19937_64 draws_;
};

}  // namespace hipress::planner
