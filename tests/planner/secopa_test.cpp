#include "planner/rules/secopa.hpp"

#include <catch2/catch.hpp>

#include "io/error.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

SecopaCosts::Cost constant(double cost) {
  return [cost](double) { return cost; };
}

SecopaCosts::Cost proportional(double slope) {
  return [slope](double x) { return slope * x; };
}

SecopaCosts::Transfer same(const SecopaCosts::Cost& cost) { return {cost, cost, cost}; }

TEST_CASE("ps charges min(K+1, N) encodes and min(N-1+K, 2(N-1)) decodes in a row") {
  // N = 4 and 4 elements. K = 4 has the smallest x, 1: gather and broadcast cost 2000, min(5, 4) =
  // 4 encodes cost 1 each, min(7, 6) = 6 decodes cost 10 each. Together this is 2064.
  const SecopaCosts costs = {constant(1), constant(10), same(constant(1e6)),
                             same(proportional(1000))};
  const SecopaChoice four = choose(costs, "ps", 4, 4);
  CHECK(four.compress);
  CHECK(four.partitions == 4);
  CHECK(four.cost == 2064);
  // Free transfers: K = 1 has the fewest codec steps: 2 encodes and min(4, 6) = 4 decodes cost 42.
  const SecopaCosts codecs_only = {constant(1), constant(10), same(constant(1e6)),
                                   same(constant(0))};
  CHECK(choose(codecs_only, "ps", 4, 4).partitions == 1);
  CHECK(choose(codecs_only, "ps", 4, 4).cost == 42);
}

TEST_CASE("ring charges 2(N-1) sends, and N encodes and decodes if compressed") {
  // N = 3 and K = 3, so x = 2. Raw sends cost 2·2·(5·2) = 40. Compressed, sends, encodes and
  // decodes cost 2·2·2 + 3·1 + 3·2 = 17.
  const SecopaCosts costs = {constant(1), constant(2), same(proportional(5)),
                             same(proportional(1))};
  const SecopaChoice compressed = choose(costs, "ring", 3, 6);
  CHECK(compressed.compress);
  CHECK(compressed.partitions == 3);
  CHECK(compressed.cost == 17);
  const SecopaCosts dear = {constant(10), constant(10), same(proportional(5)),
                            same(proportional(1))};
  CHECK_FALSE(choose(dear, "ring", 3, 6).compress);  // compressed 8 + 30 + 30, raw 40
  CHECK(choose(dear, "ring", 3, 6).cost == 40);
}

TEST_CASE("the first of equal Ks wins, and of equal costs the raw one") {
  const SecopaCosts costs = {constant(0), constant(0), same(constant(7)), same(constant(7))};
  for (const char* topology : {"ps", "ring"}) {
    CHECK(choose(costs, topology, 8, 1000).partitions == 1);
    CHECK_FALSE(choose(costs, topology, 8, 1000).compress);
  }
}

TEST_CASE("one node compresses nothing, and other topologies have no formula") {
  CHECK_FALSE(choose({}, "ps", 1, 1 << 30).compress);
  CHECK(choose({}, "ring", 1, 1 << 30).partitions == 1);
  CHECK_THROWS_WITH(choose({}, "tree", 4, 1), Contains("tree") && Contains("ps and ring"));
}

TEST_CASE("published costs are constant below the point where the line meets the overhead") {
  const SecopaCosts costs = published_costs(16);
  // Broadcast at N = 16: 0.45538 + 1.2915e-5·x meets the overhead 0.58353 at x = 9922.6 elements.
  CHECK(costs.raw.broadcast(9922) == 0.58353);
  CHECK(costs.raw.broadcast(9923) == Approx(0.45538 + 1.2915e-5 * 9923));
  // For gather, A is above the overhead, so the line holds from 0 on.
  CHECK(costs.raw.gather(0) == 1.4406);
  // A compressed message has 1/16 of the elements. The decode's cost depends on that number, too.
  CHECK(costs.compressed.gather(1.6e6) == costs.raw.gather(1e5));
  CHECK(costs.decode(1.6e9) == 1.3956e-1 + 6.2041e-9 * 1e8);
  CHECK(costs.encode(1e8) == 5.8938e-2 + 1.4133e-8 * 1e8);
}

TEST_CASE(
    "between published numbers of nodes, the cost per peer is interpolated, and beyond it is "
    "held") {
  // A of gather, divided by N−1, is 0.80768/7 at N = 8 and 1.4406/15 at N = 16; 12 lies halfway.
  CHECK(published_costs(12).raw.gather(0) == Approx((0.80768 / 7 + 1.4406 / 15) / 2 * 11));
  // 5 lies a quarter of the way from 4 to 8; broadcast's B/(N−1) is 2.7157e-6/3 and 6.1172e-6/7.
  const double per_peer = 2.7157e-6 / 3 + (6.1172e-6 / 7 - 2.7157e-6 / 3) / 4;
  const SecopaCosts five = published_costs(5);
  CHECK(five.raw.broadcast(2e8) - five.raw.broadcast(1e8) == Approx(per_peer * 4 * 1e8));
  CHECK(published_costs(32).raw.gather(0) == Approx(1.4406 / 15 * 31));
  CHECK(published_costs(2).raw.gather(0) == Approx(0.41930 / 3));
  CHECK(published_costs(8).raw.gather(0) == 0.80768);
}

TEST_CASE("what was interpolated or extrapolated is said") {
  CHECK(describe_interpolation(8, {4, 8, 16}).empty());
  CHECK_THAT(describe_interpolation(12, {4, 8, 16}),
             Contains("12 nodes: interpolated between 8 and 16"));
  CHECK_THAT(describe_interpolation(32, {4, 8, 16}), Contains("extrapolated from 16"));
  CHECK_THAT(describe_interpolation(2, {4, 8, 16}), Contains("extrapolated from 4"));
}

costs::Profile measured_profile() {
  costs::Profile profile;
  profile.name = "lab";
  const costs::Curve encode = {{{0, 2e-6, 1e-9}}, 0};
  const costs::Curve decode = {{{0, 3e-6, 2e-9}}, 0};
  profile.codecs["eighth"] = {encode, decode, decode};
  profile.link = {
      .overhead_s = 1e-6, .bandwidth = 4e9, .bandwidth_both_ways = 2e9, .latency_s = 5e-6};
  return profile;
}

const casync::Algorithm kEighth = {"eighth", [](std::int64_t elements) { return elements / 8; },
                                   false};

TEST_CASE("measured fan-in and fan-out are interpolated per peer, in bytes") {
  costs::Profile profile = measured_profile();
  profile.fan_in[4] = {{{0, 3e-6, 3e-9}}, 0};   // 1 us + 1 ns per byte for each of 3 peers
  profile.fan_in[8] = {{{0, 14e-6, 7e-9}}, 0};  // 2 us + 1 ns per byte for each of 7 peers
  profile.fan_out = profile.fan_in;
  const SecopaCosts costs = measured_costs(profile, kEighth, 6);
  // N = 6 lies halfway: 1.5 us + 1 ns per byte and peer; 4000 bytes raw, 125 if compressed.
  CHECK(costs.raw.gather(1000) == Approx(5 * (1.5e-6 + 4000e-9)));
  CHECK(costs.compressed.broadcast(1000) == Approx(5 * (1.5e-6 + 125e-9)));
}

TEST_CASE("without fits, gather and broadcast come from the link, as sends always do") {
  const SecopaCosts costs = measured_costs(measured_profile(), kEighth, 3);
  // Both take L + 2·(o + 4000 B / 4 GB/s) = 5 + 2·(1 + 1) us.
  CHECK(costs.raw.gather(1000) == Approx(9e-6));
  CHECK(costs.raw.broadcast(1000) == Approx(9e-6));
  // A send takes o + 4000 B / 2 GB/s + L = 1 + 2 + 5 us: in a ring, links are busy both ways.
  CHECK(costs.raw.send(1000) == Approx(8e-6));
  CHECK(costs.encode(1000) == Approx(3e-6));
  CHECK(costs.decode(1000) == Approx(5e-6));  // per element of the decoded output
}

TEST_CASE("fits of fan-in and fan-out are left out on other links than they were measured on") {
  costs::Profile profile = measured_profile();
  profile.fan_in[4] = profile.fan_out[4] = {{{0, 3e-6, 3e-9}}, 0};
  profile.all_reduce[4] = {{{0, 0, 2e-9}}, 0};
  CHECK(profile_on_link(profile, profile.link) == profile);
  costs::LinkCosts slow = profile.link;
  slow.bandwidth = 1e9;
  const costs::Profile moved = profile_on_link(profile, slow);
  CHECK(moved.link == slow);
  CHECK(moved.fan_in.empty());
  CHECK(moved.fan_out.empty());
  // The gather takes L + 3·(o + 4000 B / 1 GB/s) = 5 + 3·(1 + 4) us.
  CHECK(measured_costs(moved, kEighth, 4).raw.gather(1000) == Approx(20e-6));
}

models::Model one_gradient(std::int64_t elements) {
  models::Model model;
  model.gradients.push_back({.name = "g", .elements = elements});
  return model;
}

TEST_CASE("the search uses the first algorithm that is no cast") {
  CHECK(first_lossy({"fp16", "tbq", "onebit"}) == "tbq");
  CHECK(first_lossy({"bf16", "fp16"}) == "bf16");
  const models::Model model = one_gradient(100 << 20);
  const SearchResult found =
      search_secopa({.model = model, .nodes = 4, .algorithms = {"fp16", "tbq"}});
  REQUIRE(found.plan.decisions[0].algorithm != casync::kRaw);
  CHECK(found.plan.algorithms[static_cast<std::size_t>(found.plan.decisions[0].algorithm)].name ==
        "tbq");
}

TEST_CASE("the search says where its costs come from") {
  const models::Model model = one_gradient(1000);
  const auto diagnostics = [&](const std::string& topology, std::uint32_t nodes,
                               const costs::Profile* profile) {
    std::string text;
    for (const std::string& diagnostic : search_secopa({.model = model,
                                         .topology = topology,
                                         .nodes = nodes,
                                         .algorithms = {"onebit"},
                                         .profile = profile})
                                             .diagnostics) {
      text += diagnostic + "\n";
    }
    return text;
  };
  CHECK(diagnostics("ps", 16, nullptr).empty());
  CHECK_THAT(diagnostics("ps", 12, nullptr), Contains("interpolated"));
  CHECK_THAT(diagnostics("ps", 32, nullptr), Contains("extrapolated"));
  CHECK_THAT(diagnostics("ring", 32, nullptr),
             Contains("nothing was interpolated or extrapolated"));
  CHECK_THAT(diagnostics("ps", 1, nullptr), Contains("one node"));
  costs::Profile profile = measured_profile();
  profile.codecs["onebit"] = profile.codecs["eighth"];
  CHECK_THAT(diagnostics("ps", 4, &profile),
             Contains("'lab'") && Contains("derived from its link"));
}

TEST_CASE("a profile without the algorithm is an error that names it") {
  const models::Model model = one_gradient(1000);
  const costs::Profile profile = measured_profile();
  CHECK_THROWS_WITH(
      search_secopa({.model = model, .nodes = 4, .algorithms = {"onebit"}, .profile = &profile}),
      Contains("onebit") && Contains("eighth"));
}

}  // namespace
}  // namespace hipress::planner
