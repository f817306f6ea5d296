#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "planner/choices/choices.hpp"
#include "planner/problem/problem.hpp"
#include "planner/timing/evaluation.hpp"

namespace hipress::planner {

/// Random numbers that are the same with every standard library, since no std distribution is used.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  /// Draws a number whose logarithm is uniformly distributed.
  double log_uniform(double from, double to) { return from * std::pow(to / from, uniform()); }

 private:
  std::mt19937_64 engine_;
};

/// Features of the simulator that an instance may use, besides links, codecs and gradients.
struct Features {
  bool grouping = true;  ///< bulk groups and batches
  bool uneven = true;    ///< stragglers, overlap factors, shared cores, bursts, half duplex
  bool layered = true;   ///< several GPUs per node, hosts and racks, all-reduce
  std::uint32_t most_nodes = 16;
  std::size_t most_gradients = 8;
  std::size_t most_options = 8;
};

/// A small problem that owns all its parts.
class RandomInstance {
 public:
  RandomInstance(std::uint64_t seed, const Features& features) : draws_(seed) {
    const auto nodes = static_cast<std::uint32_t>(2 + draws_.below(features.most_nodes - 1));
    make_profile();
    make_model(1 + draws_.below(features.most_gradients));
    machines_ = std::make_unique<Machines>(
        Machines{profile_, costs::cluster_from_profile(profile_, nodes),
                 draws_.one_in(2) ? sim::Network::kPort : sim::Network::kFair});
    if (features.uneven) make_uneven();
    if (features.layered) add_layers();
    make_choices(features);
  }

  const models::Model& model() const { return model_; }
  const Machines& machines() const { return *machines_; }
  const Choices& choices() const { return choices_; }
  Problem problem() const {
    return {.model = model_,
            .topology = choices_.schemes.front().topology,
            .nodes = machines_->cluster.nodes,
            .algorithms = {"onebit", "fp16"},
            .profile = &profile_,
            .machines = machines_.get()};
  }

  double iteration_s(std::size_t scheme, const std::vector<std::uint16_t>& options) const {
    casync::Plan plan = make_plan(problem(), choices_, scheme, options);
    plan.gpus_per_node = machines_->cluster.gpus_per_node;
    const sim::TaskCosts costs(profile_, plan.algorithms);
    const sim::Options how = {.network = machines_->network,
                              .transfer_order = choices_.schemes[scheme].transfer_order};
    return casync::to_seconds(
        sim::simulate(casync::expand(model_, plan), costs, machines_->cluster, how).iteration);
  }

  std::string describe(std::size_t scheme) const {
    const costs::Cluster& cluster = machines_->cluster;
    std::ostringstream text;
    text << choices_.schemes[scheme].topology << " raw '" << choices_.schemes[scheme].raw_topology
         << "' bulk " << choices_.schemes[scheme].bulk.threshold_bytes << " batch "
         << choices_.schemes[scheme].batch.threshold_bytes << " N " << cluster.nodes << " "
         << sim::to_string(machines_->network) << " gpus " << cluster.gpus_per_node << " cores "
         << cluster.cores_per_host << " turn " << cluster.core_turn_s << " burst "
         << cluster.link.burst_bytes << " duplex "
         << cluster.link.bandwidth_both_ways / cluster.link.bandwidth << " host link "
         << cluster.host_link.has_value() << " rack " << !cluster.racks.empty() << " overlap "
         << cluster.overlap.compute_codec << " speeds";
    for (const double speed : cluster.compute_speed) text << ' ' << speed;
    return text.str();
  }

  std::vector<std::uint16_t> random_options() {
    std::vector<std::uint16_t> options;
    for (const auto& of_gradient : choices_.gradients) {
      options.push_back(static_cast<std::uint16_t>(draws_.below(of_gradient.size())));
    }
    return options;
  }
  std::size_t random_scheme() { return draws_.below(choices_.schemes.size()); }

  /// The option set with this plan only.
  Choices only(std::size_t scheme, const std::vector<std::uint16_t>& options) const {
    Choices one = choices_;
    one.schemes = {choices_.schemes[scheme]};
    for (std::size_t g = 0; g < options.size(); ++g) {
      one.gradients[g] = {choices_.gradients[g][options[g]]};
    }
    return one;
  }

 private:
  costs::Curve curve(double least_per_element) {
    costs::Curve curve;
    const double a = draws_.one_in(4) ? 0 : draws_.log_uniform(1e-7, 1e-4);
    const double b = draws_.log_uniform(least_per_element, 100 * least_per_element);
    curve.pieces.push_back({0, a, b});
    if (draws_.one_in(3)) {
      const double knee = std::floor(draws_.log_uniform(1e3, 1e6));
      curve.pieces.push_back({knee, a + b * knee / 2, b / 2});
    }
    if (draws_.one_in(3)) curve.floor_s = draws_.log_uniform(1e-7, 1e-4);
    return curve;
  }

  void make_profile() {
    for (const char* name : {"onebit", "fp16"}) {
      profile_.codecs[name] = {curve(1e-11), curve(1e-11), curve(1e-11)};
    }
    profile_.merge = curve(1e-11);
    costs::LinkCosts& link = profile_.link;
    link.bandwidth = draws_.log_uniform(1e7, 1e10);
    link.bandwidth_both_ways = link.bandwidth;
    link.overhead_s = draws_.one_in(4) ? 0 : draws_.log_uniform(1e-7, 1e-4);
    link.latency_s = draws_.one_in(4) ? 0 : draws_.log_uniform(1e-7, 1e-4);
  }

  void make_model(std::size_t gradients) {
    double ready = 0;
    double bytes = 0;
    for (std::size_t g = 0; g < gradients; ++g) {
      const auto elements = static_cast<std::int64_t>(draws_.log_uniform(32, 32e6));
      model_.gradients.push_back({.name = fmt::format("g{}", g), .elements = elements});
      bytes += 4.0 * static_cast<double>(elements);
    }
    // Communication takes 0.3 to 10 times as long as backward.
    const double backward = 2 * bytes / profile_.link.bandwidth / draws_.log_uniform(0.3, 10);
    for (models::Gradient& gradient : model_.gradients) {
      if (!draws_.one_in(4)) ready += draws_.uniform() * backward / static_cast<double>(gradients);
      gradient.ready_s = ready;
    }
    model_.forward_s = draws_.one_in(2) ? 0 : backward / 2;
    if (gradients > 1 && draws_.one_in(3)) {
      std::swap(model_.gradients.front(), model_.gradients.back());
    }
  }

  void make_uneven() {
    costs::Cluster& cluster = machines_->cluster;
    if (draws_.one_in(3)) {
      cluster.compute_speed[draws_.below(cluster.nodes)] = draws_.log_uniform(0.3, 1);
    }
    if (draws_.one_in(6)) cluster.compute_speed.assign(cluster.nodes, 1.7);
    if (draws_.one_in(4)) {
      cluster.overlap = {1 + draws_.uniform(), 1 + draws_.uniform(), 1 + draws_.uniform()};
    }
    if (costs::slows(cluster.overlap) && draws_.one_in(2)) {
      costs::OverlapMatrix& matrix = cluster.overlap.matrix.emplace();
      for (costs::ClassOverlap& row : matrix.classes) {
        for (const auto& key : costs::kClassOverlapKeys) row.*key.factor = 1 + draws_.uniform();
      }
      matrix.codec_beside_transfer = 1 + draws_.uniform();
    }
    if (draws_.one_in(5)) {
      cluster.cores_per_host = 1 + static_cast<int>(draws_.below(4));
      cluster.link.core_s_per_byte = draws_.log_uniform(1e-11, 1e-9);
      cluster.core_turn_s = draws_.one_in(2) ? 1e-4 : 0;
    }
    if (draws_.one_in(4)) cluster.link.bandwidth_both_ways *= 0.5 + 0.5 * draws_.uniform();
    if (draws_.one_in(5)) {
      cluster.link.burst_bytes = static_cast<std::int64_t>(draws_.log_uniform(1e3, 1e7));
    }
  }

  void add_layers() {
    costs::Cluster& cluster = machines_->cluster;
    if (draws_.one_in(4)) {
      cluster.gpus_per_node = 2;
      cluster.gpu_link = {draws_.log_uniform(1e-7, 1e-5), draws_.log_uniform(1e9, 1e11)};
    }
    all_reduce_ = draws_.one_in(4);
    if (!draws_.one_in(5) || cluster.nodes < 4) return;
    machines_->network = sim::Network::kFair;
    cluster.link.burst_bytes = 0;
    cluster.host_link = cluster.link;
    cluster.host_link->bandwidth *= 4;
    cluster.host_link->bandwidth_both_ways *= 4;
    for (std::uint32_t node = 0; node < cluster.nodes; ++node) cluster.host[node] = node / 2;
    if (draws_.one_in(2)) cluster.racks = {costs::RackCosts{1, 2, 1e-6}};
  }

  void make_choices(const Features& features) {
    for (const char* name : {"onebit", "fp16"}) choices_.algorithms.push_back(algorithm(name));
    const std::uint32_t nodes = machines_->cluster.nodes;
    for (const models::Gradient& gradient : model_.gradients) {
      std::vector<casync::Decision>& options = choices_.gradients.emplace_back();
      const std::size_t count = 1 + draws_.below(features.most_options);
      for (std::size_t i = 0; i < count; ++i) {
        const auto k = static_cast<std::int32_t>(
            draws_.one_in(3) ? nodes : 1 + draws_.below(2 * std::uint64_t{nodes}));
        options.push_back({static_cast<std::int8_t>(static_cast<int>(draws_.below(3)) - 1),
                           gradient.elements < k ? 1 : k});
      }
    }
    add_schemes(features);
  }

  void add_schemes(const Features& features) {
    const double backward = models::backward_s(model_);
    const std::size_t count = features.grouping ? 3 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      Scheme scheme = {.topology = draws_.one_in(2) ? "ps" : "ring"};
      if (all_reduce_) scheme.raw_topology = "allreduce";
      if (draws_.one_in(2)) scheme.transfer_order = sim::TransferOrder::kNeed;
      if (features.grouping) {
        scheme.bulk = rule(backward);
        scheme.batch = rule(backward);
      }
      choices_.schemes.push_back(scheme);
    }
  }

  casync::Aggregation rule(double backward) {
    casync::Aggregation rule;
    if (draws_.one_in(3)) return rule;
    rule.threshold_bytes = static_cast<std::int64_t>(draws_.log_uniform(1e3, 1e8));
    if (draws_.one_in(2)) rule.wait = casync::from_seconds(backward * draws_.uniform());
    if (draws_.one_in(2)) rule.limit_bytes = 3 * rule.threshold_bytes;
    return rule;
  }

  Draws draws_;
  models::Model model_;
  costs::Profile profile_;
  std::unique_ptr<Machines> machines_;
  Choices choices_;
  bool all_reduce_ = false;
};

}  // namespace hipress::planner
