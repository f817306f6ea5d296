#pragma once

#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

// Costs in the tests, chosen so that every expected time is a whole number of picoseconds.
inline constexpr std::int64_t kUs = 1'000'000;    // picoseconds
inline constexpr std::int64_t kEncode = 3 * kUs;  // for any size
inline constexpr std::int64_t kDecode = 2 * kUs;
inline constexpr std::int64_t kDecodeAdd = 4 * kUs;
inline constexpr std::int64_t kOverhead = 5 * kUs;
inline constexpr double kBandwidth = 1e9;  // bytes per second: 1 ns per byte
inline constexpr std::int64_t kPsPerByte = 1000;

/// A codec with one byte per element, whose costs do not depend on the size.
inline casync::Algorithm byte_codec() {
  return {.name = "byte", .encoded_bytes = [](std::int64_t elements) { return elements; }};
}

/// The same codec with messages in half precision, two bytes per element.
inline casync::Algorithm half_codec() {
  return {.name = "byte",
          .encoded_bytes = [](std::int64_t elements) { return 2 * elements; },
          .half_precision = true};
}

inline costs::Curve constant(std::int64_t picoseconds) {
  return {.pieces = {{.a_s = static_cast<double>(picoseconds) * 1e-12}}};
}

inline costs::Profile test_profile() {
  costs::Profile profile;
  profile.name = "test";
  profile.codecs["byte"] = {constant(kEncode), constant(kDecode), constant(kDecodeAdd)};
  profile.link.overhead_s = 5e-6;
  profile.link.bandwidth = kBandwidth;
  profile.link.bandwidth_both_ways = kBandwidth;
  return profile;
}

inline costs::Cluster test_cluster(std::uint32_t nodes) {
  costs::Cluster cluster;
  cluster.nodes = nodes;
  cluster.link = test_profile().link;
  for (std::uint32_t node = 0; node < nodes; ++node) cluster.host.push_back(node);
  cluster.compute_speed.assign(nodes, 1);
  return cluster;
}

inline models::Model test_model(const std::vector<std::int64_t>& sizes) {
  models::Model model;
  for (const std::int64_t elements : sizes) {
    model.gradients.push_back(
        {.name = std::string("g") + std::to_string(model.gradients.size()), .elements = elements});
  }
  return model;
}

/// Task graph of a plan with the same decision for every gradient.
inline casync::TaskGraph test_graph(const models::Model& model, const std::string& topology,
                                    std::uint32_t nodes, std::int8_t algorithm,
                                    std::int32_t partitions) {
  return casync::expand(model, {.topology = topology,
                                .nodes = nodes,
                                .algorithms = {byte_codec()},
                                .decisions = std::vector<casync::Decision>(
                                    model.gradients.size(), {algorithm, partitions})});
}

/// Scenario of a plan with the same decision for every gradient, with the tests' costs. `codec` is
/// the name of byte_codec() in it.
inline Scenario test_scenario(models::Model model, const std::string& topology, std::uint32_t nodes,
                              std::int8_t algorithm, std::int32_t partitions,
                              const std::string& codec = "byte") {
  casync::Algorithm known = byte_codec();
  known.name = codec;
  Scenario scenario;
  scenario.plan = {
      .topology = topology,
      .nodes = nodes,
      .algorithms = {known},
      .decisions = std::vector<casync::Decision>(model.gradients.size(), {algorithm, partitions})};
  scenario.model = std::move(model);
  scenario.profile = test_profile();
  scenario.profile.codecs[codec] = scenario.profile.codecs["byte"];
  scenario.cluster = test_cluster(nodes);
  return scenario;
}

inline Result run(const casync::TaskGraph& graph, const costs::Cluster& cluster, Network network) {
  return simulate(graph, TaskCosts(test_profile(), {byte_codec()}), cluster,
                  {.network = network, .record_timeline = true});
}

}  // namespace hipress::sim
