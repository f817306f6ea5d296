#include "planner/baselines/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace hipress::planner {
namespace {

constexpr std::uint32_t kNodes = 4;
constexpr double kOverhead = 10e-6;
constexpr double kBandwidth = 1e9;
constexpr double kCodec = 100e-6;  // time of each encode, decode and decode-and-add

/// Profile with the same codec time for every size, free merges, and a link without latency.
costs::Profile simple_profile() {
  costs::Profile profile;
  const costs::Curve codec = {{{0, kCodec, 0}}, 0};
  for (const char* name : {"onebit", "fp16"}) profile.codecs[name] = {codec, codec, codec};
  profile.link = {
      .overhead_s = kOverhead, .bandwidth = kBandwidth, .bandwidth_both_ways = kBandwidth};
  return profile;
}

/// Machines of kNodes nodes with the simple profile, and planning problems on them.
struct SimpleMachines {
  costs::Profile profile = simple_profile();
  Machines machines = {profile, costs::cluster_from_profile(profile, kNodes), sim::Network::kPort};

  Problem problem(const models::Model& model) const {
    return {.model = model,
            .topology = "ring",
            .nodes = kNodes,
            .algorithms = {"onebit", "fp16"},
            .profile = &profile};
  }
};

std::map<std::string, double> times_of(std::int64_t elements) {
  models::Model model;
  model.gradients.push_back({.name = "g", .elements = elements});
  const SimpleMachines on;
  std::map<std::string, double> times;
  for (const Baseline& baseline : simulate_baselines(on.problem(model), on.machines)) {
    times[std::string(baseline.name)] = baseline.iteration_s.value();
  }
  return times;
}

TEST_CASE("baselines are simulated as the plans that they stand for") {
  const std::int64_t elements = 32 * kNodes * 10000;
  const auto times = times_of(elements);
  const auto averaging = std::ranges::count_if(
      all_baselines(), [](const BaselineRow& row) { return row.is_for(JobKind::kAveraging); });
  REQUIRE(times.size() == std::size_t(averaging) - 1);  // ddp_powersgd has no costs
  // Raw ring with K = N: 2(N−1)·(α + S/(N·B)).
  const double none = 2 * (kNodes - 1) * (kOverhead + 4.0 * elements / kNodes / kBandwidth);
  CHECK(times.at("none") == Approx(none));
  // Each of the K = N partitions takes, in sequence, an encode, N−1 hops that each end with a
  // decode-and-add and an encode, N−1 hops that forward, and a decode. The messages have half of
  // the bytes. A codec stream mostly works for one partition at a time. However, a node also
  // decodes its copies during the next hop, so the last decode may wait for another decode.
  const double hop = kOverhead + 2.0 * elements / kNodes / kBandwidth;
  const double fp16 = kCodec + (kNodes - 1) * (hop + 2 * kCodec) + (kNodes - 1) * hop + kCodec;
  CHECK(times.at("fp16") >= fp16 * (1 - 1e-9));
  CHECK(times.at("fp16") <= fp16 + kCodec);
  // The gradient is above the threshold of 262144, so this is "all", which sends less than fp16.
  CHECK(times.at("threshold_262144") == times.at("all"));
  CHECK(times.at("all") < times.at("fp16"));
}

TEST_CASE("baselines that decide a verdict and take little are simulated first") {
  std::vector<const BaselineRow*> rows;
  for (const BaselineRow& row : all_baselines()) {
    if (row.is_for(JobKind::kAveraging)) rows.push_back(&row);
  }
  const auto names = [&](const std::vector<double>& tasks) {
    std::vector<std::string_view> order;
    for (const std::size_t row : simulation_order(rows, tasks)) order.push_back(rows[row]->name);
    return order;
  };
  CHECK(names(std::vector<double>(rows.size())) ==
        std::vector<std::string_view>{"none_grouped", "ddp", "fp16_grouped", "all_grouped",
                                      "secopa_grouped", "ddp_fp16", "ddp_powersgd", "none", "fp16",
                                      "all", "threshold_262144", "secopa", "greedy"});
  // The tasks of the first five rows (none, fp16, all, threshold_262144, secopa) determine their
  // order. The tasks of the other rows have no effect.
  std::vector<double> tasks(rows.size());
  std::ranges::copy(std::array{5.0, 1.0, 2.0, 4.0, 3.0}, tasks.begin());
  const std::vector<std::string_view> order = names(tasks);
  CHECK(
      std::vector(order.begin() + 7, order.end()) ==
      std::vector<std::string_view>{"fp16", "all", "secopa", "threshold_262144", "none", "greedy"});
}

TEST_CASE("DDP of many gradients is simulated where its nodes differ, and cannot be folded",
          "[slow]") {
  models::Model model;
  for (int g = 0; g < 17000; ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g), .elements = 100'000});
  }
  SimpleMachines on;
  on.machines.cluster = costs::cluster_from_profile(on.profile, 128);
  on.machines.cluster.host.resize(128);
  on.machines.network = sim::Network::kFair;
  for (std::uint32_t node = 0; node < 128; ++node) on.machines.cluster.host[node] = node / 8;
  on.machines.cluster.host_link = on.machines.cluster.link;
  on.machines.cluster.host_link->bandwidth *= 10;
  Problem problem = on.problem(model);
  problem.nodes = 128;
  REQUIRE(whole_graphs_are_too_large(model, problem.nodes));
  const Baseline ddp = simulate_baseline(*find_baseline("ddp"), problem, on.machines);
  CAPTURE(ddp.diagnostic);
  CHECK(ddp.iteration_s.has_value());
  CHECK(ddp.diagnostic.empty());
}

TEST_CASE("baselines whose own algorithm the profile lacks are not simulated, and say so") {
  models::Model model;
  model.gradients.push_back({.name = "g", .elements = 1 << 20});
  SimpleMachines on;
  on.profile.codecs.erase("fp16");
  Problem problem = on.problem(model);
  problem.algorithms = {"onebit"};
  for (const Baseline& baseline : simulate_baselines(problem, on.machines)) {
    const bool own = baseline.name.find("fp16") != std::string_view::npos;
    CHECK(baseline.iteration_s.has_value() == !own);
    if (own) CHECK(baseline.diagnostic == "the profile has no costs of fp16");
  }
}

TEST_CASE("below the threshold, its baseline is none") {
  const auto times = times_of(32 * kNodes * 10);
  CHECK(times.at("threshold_262144") == times.at("none"));
  // The messages are so small that the codec steps of `all` take longer than it saves.
  CHECK(times.at("all") > times.at("none"));
  CHECK(times.at("secopa") <= times.at("all"));  // SeCoPa's formulas consider that, too
}

TEST_CASE("DDP's baselines take what an ideal ring does of their buckets") {
  const std::int64_t elements = 32 * kNodes * 10000;
  const auto times = times_of(elements);
  const auto ring_s = [&](double bytes) {
    return 2 * (kNodes - 1) * (kOverhead + bytes / kNodes / kBandwidth);
  };
  CHECK(times.at("ddp") == Approx(ring_s(4.0 * elements)));
  CHECK(times.at("ddp_fp16") == Approx(ring_s(2.0 * elements) + 2 * kCodec));
}

TEST_CASE("a grouped baseline is as good as the same ungrouped, and better with many messages") {
  models::Model model;
  for (int g = 0; g < 50; ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g), .elements = 64});
  }
  SimpleMachines on;
  on.machines.network = sim::Network::kFair;
  const auto time_of = [&](const char* name) {
    return simulate_baseline(*find_baseline(name), on.problem(model), on.machines)
        .iteration_s.value();
  };
  for (const char* name : {"none", "fp16", "all"}) {
    CHECK(time_of((std::string(name) + "_grouped").c_str()) < 0.2 * time_of(name));
  }
}

}  // namespace
}  // namespace hipress::planner
