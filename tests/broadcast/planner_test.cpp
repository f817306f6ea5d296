// Tests that planned broadcasts are as fast as the best of simulations of every chunk count.
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "casync/topology.hpp"
#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "planner/broadcast/broadcast.hpp"
#include "plans/broadcast.hpp"
#include "plans/plan_builder.hpp"

using namespace hipress;
using Catch::Contains;
using planner::BroadcastProblem;
using planner::BroadcastResult;
using planner::Machines;

namespace {

models::Model tensors(const std::vector<std::int64_t>& sizes) {
  models::Model model{.name = "test", .source = {}, .unit = {}, .gradients = {}};
  for (const std::int64_t elements : sizes) {
    model.gradients.push_back(
        {.name = "t" + std::to_string(model.gradients.size()), .elements = elements});
  }
  return model;
}

/// Costs: a message takes 2 us + bytes / (1 GB/s) and has a latency of 3 us; a codec takes 1 us and
/// the given time per element.
costs::Profile profile_of(double encode_s, double decode_s) {
  costs::Profile profile;
  profile.name = "made up";
  profile.link = {
      .overhead_s = 2e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9, .latency_s = 3e-6};
  const auto curve = [](double per_element_s) {
    return costs::Curve{{{.a_s = 1e-6, .b_s = per_element_s}}};
  };
  for (const char* name : {"fp16", "onebit"}) {
    profile.codecs[name] = {
        .encode = curve(encode_s), .decode = curve(decode_s), .decode_add = curve(decode_s)};
  }
  return profile;
}

/// Least time over all chunk counts, with the given topology and algorithm.
double least_of_all(const BroadcastProblem& problem, const std::string& topology,
                    const std::string& algorithm) {
  const plans::PlanContext context = {
      .model = problem.model, .topology = topology, .nodes = problem.machines.cluster.nodes};
  const std::int64_t elements = problem.model.gradients[0].elements;
  double least_s = 1e9;
  for (std::int32_t chunks = 1; chunks <= (elements + 31) / 32; ++chunks) {
    plans::PlanBuilder builder(context);
    builder.decide(0, algorithm.empty() ? casync::kRaw : builder.algorithm(algorithm), chunks);
    casync::Plan plan = builder.take().plan;
    plan.root = problem.root;
    least_s =
        std::min(least_s, planner::simulated_iteration_s(problem.model, plan, problem.machines));
  }
  return least_s;
}

}  // namespace

TEST_CASE("all chunk counts that make other chunks are there") {
  for (const std::int64_t elements : {1, 31, 32, 33, 100, 999, 4096, 12345}) {
    std::set<std::int64_t> lengths;
    std::int64_t last = 0;
    for (const planner::ChunkCount& count : planner::chunk_counts(elements)) {
      CHECK(count.chunks > last);
      last = count.chunks;
      CHECK(casync::slice(elements, count.chunks, 0).elements == count.elements);
      CHECK(casync::slice(elements, count.chunks, count.chunks - 1).elements > 0);
      lengths.insert(count.elements);
    }
    for (std::int64_t chunks = 1; chunks <= elements; ++chunks) {
      CAPTURE(elements, chunks);
      CHECK(lengths.contains(casync::slice(elements, chunks, 0).elements));
    }
  }
}

TEST_CASE("the planner's chunk count is the best of all") {
  const std::int64_t elements = GENERATE(1, 500, 3001);
  const std::uint32_t nodes = GENERATE(2u, 3u, 8u);
  const auto network = GENERATE(sim::Network::kPort, sim::Network::kFair);
  // In turn, the network, the encoder or the decoder is slowest.
  const auto [encode_s, decode_s] =
      GENERATE(std::pair{1e-10, 2e-10}, std::pair{8e-9, 1e-9}, std::pair{1e-9, 8e-9});
  const models::Model model = tensors({elements});
  const costs::Profile profile = profile_of(encode_s, decode_s);
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, nodes),
                             .network = network};
  const BroadcastProblem problem = {.model = model,
                                    .machines = machines,
                                    .root = nodes - 1,
                                    .topologies = {"chain", "binomial", "scatter_allgather"},
                                    .algorithms = {"onebit"}};
  double least_s = 1e9;
  for (const std::string& topology : problem.topologies) {
    CAPTURE(elements, nodes, encode_s, topology);
    const double least_of_topology_s =
        std::min(least_of_all(problem, topology, ""), least_of_all(problem, topology, "onebit"));
    BroadcastProblem one = problem;
    one.topologies = {topology};
    const BroadcastResult found = planner::plan_broadcast(one);
    CHECK(found.proven);
    CHECK(found.best.seconds == least_of_topology_s);
    least_s = std::min(least_s, least_of_topology_s);
  }
  const BroadcastResult found = planner::plan_broadcast(problem);
  REQUIRE(found.choices.size() == 6);
  CHECK(found.proven);
  CHECK(found.best.seconds == least_s);
  CHECK(found.plan.root == nodes - 1);
  CHECK(planner::simulated_iteration_s(model, found.plan, machines) == least_s);
}

TEST_CASE("the bound holds on clusters of other kinds, and so the best count is found") {
  const models::Model model = tensors({2000});
  costs::Profile profile = profile_of(1e-9, 2e-9);
  profile.link.bandwidth_both_ways = 0.7e9;
  costs::Cluster cluster = costs::cluster_from_profile(profile, 6);
  SECTION("a link that is slower both ways") {}
  SECTION("bursts") { cluster.link.burst_bytes = 3000; }
  SECTION("cores that are shared") {
    profile.link.core_s_per_byte = 1e-9;
    profile.link.core_s_per_message = 2e-6;
    cluster.link = profile.link;
    cluster.host = {0, 0, 0, 0, 0, 0};
    cluster.cores_per_host = 2;
  }
  SECTION("two nodes on each host, and racks of two hosts") {
    cluster.host = {0, 0, 1, 1, 2, 2};
    cluster.host_link =
        costs::LinkCosts{.overhead_s = 1e-6, .bandwidth = 5e9, .bandwidth_both_ways = 5e9};
    cluster.racks = {costs::RackCosts{.hosts = 2, .oversubscription = 2, .latency_s = 1e-6}};
  }
  SECTION("nodes of different speed") { cluster.compute_speed = {1, 0.5, 1, 1, 1.25, 1}; }
  const Machines machines = {
      .profile = profile, .cluster = cluster, .network = sim::Network::kFair};
  const BroadcastProblem problem = {.model = model,
                                    .machines = machines,
                                    .root = 2,
                                    .topologies = {"chain", "binomial", "scatter_allgather"},
                                    .algorithms = {"onebit"}};
  for (const std::string& topology : problem.topologies) {
    CAPTURE(topology);
    BroadcastProblem one = problem;
    one.topologies = {topology};
    const BroadcastResult found = planner::plan_broadcast(one);
    CHECK(found.proven);
    CHECK(found.best.seconds ==
          std::min(least_of_all(problem, topology, ""), least_of_all(problem, topology, "onebit")));
  }
}

TEST_CASE("a large tensor needs few simulations") {
  // The best chunk count squared is (N-2) S / (a B) = 6 · 64e6 / (50e-6 · 25e6) = 554².
  const models::Model model = tensors({16'000'000});
  costs::Profile profile = profile_of(1e-10, 1e-10);
  profile.link = {.overhead_s = 50e-6, .bandwidth = 25e6, .bandwidth_both_ways = 25e6};
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 8)};
  const BroadcastResult found =
      planner::plan_broadcast({.model = model, .machines = machines, .topologies = {"chain"}});
  CHECK(found.best.proven);
  CHECK(found.best.simulations <= 3);
  CHECK(found.best.chunks == Approx(554).epsilon(0.03));
  // The time is (N-2+c)(a + S/(cB)) with that chunk count c.
  CHECK(found.best.seconds == Approx(560 * (50e-6 + 64e6 / (554 * 25e6))).epsilon(1e-3));
}

TEST_CASE("a search that is cut short says so") {
  const models::Model model = tensors({3001});
  const costs::Profile profile = profile_of(1e-9, 1e-9);
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 5)};
  const BroadcastResult found = planner::plan_broadcast({.model = model,
                                                         .machines = machines,
                                                         .topologies = {"binomial", "chain"},
                                                         .evaluations = 1});
  CHECK(found.choices.size() == 1);  // the other topology was not simulated
  CHECK(found.best.simulations == 1);
  CHECK_FALSE(found.proven);
  CHECK_THROWS_WITH(
      planner::plan_broadcast({.model = model, .machines = machines, .evaluations = 0}),
      Contains("`evaluations`"));
}

TEST_CASE("small tensors go by a tree, large ones by a chain", "[slow]") {
  const costs::Profile profile = profile_of(1e-10, 1e-10);
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 16)};
  const models::Model small = tensors({100}), large = tensors({10'000'000});
  CHECK(planner::plan_broadcast({.model = small, .machines = machines}).best.topology ==
        "binomial");
  CHECK(planner::plan_broadcast({.model = large, .machines = machines}).best.topology == "chain");
}

TEST_CASE("the tensors of a model are cut into chunks of one length") {
  const models::Model model = tensors({100, 50'000, 1'000'000, 7, 300'000});
  const costs::Profile profile = profile_of(1e-10, 1e-10);
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 4)};
  const BroadcastResult found =
      planner::plan_broadcast({.model = model, .machines = machines, .topologies = {"chain"}});
  const std::int64_t length = found.best.chunk_elements;
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const std::int64_t elements = model.gradients[g].elements;
    CHECK(found.plan.decisions[g].partitions == (elements + length - 1) / length);
  }
  // One chunk per tensor, or very many chunks, take longer.
  for (const std::int32_t chunks : {1, 5000}) {
    CHECK(found.best.seconds <
          planner::plan_broadcast(
              {.model = model, .machines = machines, .topologies = {"chain"}, .chunks = chunks})
              .best.seconds);
  }
}

TEST_CASE("tensors of half precision travel in it, which loses nothing") {
  models::Model model = tensors({100'000});
  model.gradients[0].dtype = models::Dtype::kBfloat16;
  CHECK(planner::lossy_of({"bf16", "fp16", "onebit"}, model) ==
        std::vector<std::string>{"fp16", "onebit"});
  costs::Profile profile = profile_of(1e-10, 1e-10);
  profile.codecs["bf16"] = profile.codecs["fp16"];
  CHECK(planner::lossless_algorithms(profile, model).empty());  // raw tensors are already bf16
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 4)};
  const BroadcastResult found = planner::plan_broadcast({.model = model, .machines = machines});
  // The message has 200 kB, not the 400 kB of fp32.
  CHECK(found.best.seconds < 300e-6);
}

TEST_CASE("messages that vary with the data are as long as the profile's sample says") {
  models::Model model = tensors({100'000});
  model.gradients[0].dtype = models::Dtype::kBfloat16;
  costs::Profile profile = profile_of(1e-12, 1e-12);
  profile.codecs["lossless"] = profile.codecs["bf16"] = profile.codecs["fp16"];
  const auto best = [&](double share) {
    profile.codecs["lossless"].message_share = share;
    const Machines machines = {.profile = profile,
                               .cluster = costs::cluster_from_profile(profile, 4)};
    return planner::plan_broadcast({.model = model,
                                    .machines = machines,
                                    .topologies = {"chain"},
                                    .algorithms = {"lossless"}})
        .best;
  };
  CHECK(best(1).algorithm.empty());  // the message is as long as in fp32
  CHECK(best(0.51).algorithm.empty());
  CHECK(best(0.33).algorithm == "lossless");
  CHECK(best(0.33).seconds < 0.9 * best(1).seconds);
}

TEST_CASE("broadcasts that cannot be are refused") {
  const models::Model model = tensors({100});
  const costs::Profile profile = profile_of(1e-10, 1e-10);
  const Machines machines = {.profile = profile,
                             .cluster = costs::cluster_from_profile(profile, 4)};
  CHECK_THROWS_WITH(planner::plan_broadcast({.model = model, .machines = machines, .root = 4}),
                    Contains("`root` 4 is not one of the 4 nodes") && Contains("0 to 3"));
  CHECK_THROWS_WITH(planner::plan_broadcast({.model = model, .machines = machines, .chunks = 5}),
                    Contains("`chunks` 5") && Contains("400 bytes, makes at most 4"));
  CHECK_THROWS_WITH(
      planner::plan_broadcast({.model = model, .machines = machines, .algorithms = {"powersgd"}}),
      Contains("powersgd") && Contains("`algorithm`"));
  const Machines alone = {.profile = profile, .cluster = costs::cluster_from_profile(profile, 1)};
  CHECK_THROWS_WITH(planner::plan_broadcast({.model = model, .machines = alone}),
                    Contains("`nnodes`"));
  CHECK_THROWS_AS(plans::one_tensor(0, models::Dtype::kFloat32), io::InputError);
}
