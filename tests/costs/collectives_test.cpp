#include "costs/collectives.hpp"

#include <catch2/catch.hpp>

using namespace hipress::costs;
using Catch::Contains;

namespace {

/// With o = 1 us, B = 1 GB/s, L = 2 us, an ideal all-reduce takes 2(N-1)·(3 us + S/N ns).
Profile profile_with(const GatherCosts& measured) {
  Profile profile;
  profile.link = {
      .overhead_s = 1e-6, .bandwidth = 1e9, .bandwidth_both_ways = 1e9, .latency_s = 2e-6};
  profile.all_reduce = measured;
  return profile;
}

Curve line(double a_s, double b_s) { return {.pieces = {{.a_s = a_s, .b_s = b_s}}}; }

/// `factor` times the time of an ideal all-reduce of n nodes.
Curve rings(double factor, double n) {
  return line(factor * 2 * (n - 1) * 3e-6, factor * 2 * (n - 1) / n * 1e-9);
}

}  // namespace

TEST_CASE("a measured all-reduce costs what was measured") {
  const Profile profile = profile_with({{4, line(1e-3, 2e-9)}});
  const AllReduceCosts costs(profile);
  CHECK(costs.seconds(4, 1000, profile.link) == 1e-3 + 2e-9 * 1000);
  CHECK(costs.diagnostic(4).empty());
  CHECK(costs.seconds(1, 1000, profile.link) == 0);
}

TEST_CASE("an all-reduce that was not measured is an ideal ring, and says so") {
  const Profile profile = profile_with({});
  // 4 nodes, 4000 bytes: 6 steps of 3 us + 1 us.
  CHECK(AllReduceCosts(profile).seconds(4, 4000, profile.link) == Approx(24e-6));
  CHECK_THAT(AllReduceCosts(profile).diagnostic(4),
             Contains("not measured") && Contains("ideal ring"));
}

TEST_CASE("on another link, what was measured beside the wire is added to the wire there") {
  // Measured: 2 ideal times with 4 nodes, 4 with 8. So core times are 1 and 3 ideal times.
  const Profile profile = profile_with({{4, rings(2, 4)}, {8, rings(4, 8)}});
  const AllReduceCosts costs(profile);
  LinkCosts faster = profile.link;
  faster.bandwidth *= 10;
  // Ideal times for 40000 bytes: 6·(3 us + 10 us) on the profile's link, 6·(3 us + 1 us) here.
  CHECK(costs.seconds(4, 40000, faster) == Approx(6 * (3e-6 + 1e-6) + 6 * (3e-6 + 10e-6)));
  // The core time of 6 nodes is interpolated to 2 ideal times. Beyond 8, that of 8 holds.
  CHECK(costs.seconds(6, 6000, profile.link) == Approx(3 * 10 * (3e-6 + 1e-6)));
  CHECK(costs.seconds(16, 16000, profile.link) == Approx(4 * 30 * (3e-6 + 1e-6)));
  CHECK(costs.seconds(2, 2000, profile.link) == Approx(2 * 2 * (3e-6 + 1e-6)));
  CHECK_THAT(costs.diagnostic(6), Contains("interpolated between 4 and 8"));
  CHECK_THAT(costs.diagnostic(16), Contains("extrapolated from 8"));
  CHECK_THAT(costs.diagnostic(2), Contains("extrapolated from 4"));
}

TEST_CASE("what was measured to be faster than its bytes is that on no other link") {
  const Profile profile = profile_with({{4, rings(0.5, 4)}});
  const AllReduceCosts costs(profile);
  LinkCosts slower = profile.link;
  slower.bandwidth /= 10;
  CHECK(costs.seconds(4, 4000, profile.link) == Approx(0.5 * 6 * (3e-6 + 1e-6)));
  CHECK(costs.seconds(4, 4000, slower) == Approx(6 * (3e-6 + 10e-6)));
  CHECK(costs.seconds(8, 8000, profile.link) == Approx(14 * (3e-6 + 1e-6)));
}

TEST_CASE("what a loopback's collectives take is time of cores") {
  // Two ranks on two cores. A byte takes 1 ns of core time, and 1 ns on the link.
  Profile profile = profile_with({{2, rings(3, 2)}});
  profile.shared_host = true;
  profile.cores = 2;
  profile.link.core_s_per_byte = 1e-9;
  LinkCosts slow = profile.link, fast = profile.link;
  slow.bandwidth /= 100;
  fast.bandwidth *= 100;
  const double measured_s = 3 * 2 * (3e-6 + 1e-3);  // for 2 MB
  const auto on = [&](const LinkCosts& link, double ranks_per_core) {
    return AllReduceCosts(profile).seconds(2, 2'000'000, link, ranks_per_core);
  };
  CHECK(on(slow, 1) == Approx(2 * (3e-6 + 0.1)));  // the wire limits
  CHECK(on(fast, 1) == Approx(measured_s));        // the cores limit
  CHECK(on(fast, 3) == Approx(3 * measured_s));
  // Four ranks on these two cores: three times the ideal time of 4 nodes, 6·(3 us + 0.5 ms), and
  // twice that, as two ranks share a core.
  const AllReduceCosts costs(profile);
  CHECK(costs.seconds(4, 2'000'000, fast, 2) == Approx(2 * 3 * 6 * (3e-6 + 0.5e-3)));
  // If cores are hardly busy with a slow network, core time is added to wire time, even on one
  // machine.
  profile.link.core_s_per_byte = 1e-10;
  CHECK(on(slow, 1) == Approx(2 * (3e-6 + 0.1) + 2 * 2 * (3e-6 + 1e-3)));
}

TEST_CASE("what gathers and scatters shards costs what was measured, else half an all-reduce") {
  Profile profile = profile_with({{4, line(1e-3, 2e-9)}});
  CHECK(ShardCosts(profile).gather_s(4, 1000, profile.link) == (1e-3 + 2e-9 * 1000) / 2);
  CHECK(ShardCosts(profile).diagnostic(4).empty());
  // Not measured: three messages of 1 us + 1000 bytes each, and the latency.
  CHECK(ShardCosts(profile).all_to_all_s(4, 4000, profile.link) == Approx(3e-6 + 3e-6 + 2e-6));
  profile.all_gather = {{4, line(3e-3, 1e-9)}};
  profile.reduce_scatter = {{4, line(5e-3, 1e-9)}};
  profile.all_to_all = {{4, line(7e-3, 1e-9)}};
  const ShardCosts costs(profile);
  CHECK(costs.gather_s(4, 1000, profile.link) == 3e-3 + 1e-6);
  CHECK(costs.reduce_scatter_s(4, 1000, profile.link) == 5e-3 + 1e-6);
  CHECK(costs.all_to_all_s(4, 1000, profile.link) == 7e-3 + 1e-6);
  CHECK_THAT(costs.diagnostic(8), Contains("all-gather of 8 nodes") && Contains("from 4"));
  // Three times the ideal time of 4 nodes, a factor that also holds for 8.
  profile.all_gather = {{4, line(3 * 3 * 3e-6, 3 * 0.75e-9)}};
  CHECK(ShardCosts(profile).gather_s(8, 8000, profile.link) == Approx(3 * 7 * (3e-6 + 1e-6)));
}

namespace {

/// Profile for hosts of 8 H100, and the link of a collective that spans `hosts` of them.
Profile on_h100() {
  Profile profile = profile_with({});
  profile.machine = read_machine("hgx-h100");
  return profile;
}
LinkCosts spanning(const Profile& profile, std::uint32_t hosts, std::uint32_t rails = 1) {
  LinkCosts link;
  link.latency_s = profile.machine->network_latency_s;
  link.set_bandwidth(profile.machine->host_bandwidth());
  link.span = {hosts, rails, link.bandwidth};
  return link;
}
double model_s(const Profile& profile, Ranks ranks, Operation operation, double bytes) {
  return collective_time(*profile.machine, ranks, operation, bytes).seconds;
}

}  // namespace

TEST_CASE("on hosts of a machine, what was not measured takes what the model says") {
  const Profile profile = on_h100();
  const AllReduceCosts costs(profile);
  constexpr std::int64_t kBytes = 1 << 26;
  CHECK(costs.seconds(16, kBytes, spanning(profile, 2)) ==
        model_s(profile, {2, 16}, Operation::kAllReduce, kBytes));
  CHECK_THAT(costs.diagnostic(16), Contains("modelled as NCCL runs it on hgx-h100"));
  const ShardCosts shards(profile);
  CHECK(shards.gather_s(8, kBytes, spanning(profile, 1)) ==
        model_s(profile, {1, 8}, Operation::kAllGather, kBytes));
  // A group with one GPU on each of 4 hosts.
  CHECK(shards.reduce_scatter_s(4, kBytes, spanning(profile, 4)) ==
        model_s(profile, {4, 4}, Operation::kReduceScatter, kBytes));
  // If ranks are hosts, each GPU of a host reduces an eighth over its own card.
  CHECK(costs.seconds(4, kBytes, spanning(profile, 4, 8)) ==
        model_s(profile, {4, 4}, Operation::kAllReduce, kBytes / 8.0));
  // With twice the bandwidth, a gather among one GPU per host is nearly twice as fast.
  LinkCosts faster = spanning(profile, 4);
  faster.span.host_bandwidth *= 2;
  const double ratio =
      shards.gather_s(4, 1 << 30, spanning(profile, 4)) / shards.gather_s(4, 1 << 30, faster);
  CHECK(ratio > 1.9);
  CHECK(ratio < 2);
  // A link without a span is not modelled: an ideal ring.
  CHECK(costs.seconds(4, 4000, profile.link) == Approx(24e-6));
}

TEST_CASE("what was measured on a machine scales the model of other numbers of its hosts") {
  Profile profile = on_h100();
  profile.all_reduce = {{16, line(0, 1e-11)}};
  const AllReduceCosts costs(profile);
  constexpr std::int64_t kBytes = 1 << 28;
  CHECK(costs.seconds(16, kBytes, spanning(profile, 2)) == Approx(kBytes * 1e-11));
  const double beside = kBytes * 1e-11 / model_s(profile, {2, 16}, Operation::kAllReduce, kBytes);
  CHECK(costs.seconds(32, kBytes, spanning(profile, 4)) ==
        Approx(beside * model_s(profile, {4, 32}, Operation::kAllReduce, kBytes)));
  // Within a host nothing was measured, so the model is not scaled.
  CHECK(costs.seconds(8, kBytes, spanning(profile, 1)) ==
        model_s(profile, {1, 8}, Operation::kAllReduce, kBytes));
  CHECK_THAT(costs.diagnostic(8), Contains("modelled as NCCL runs it on hgx-h100"));
  CHECK_THAT(costs.diagnostic(32), Contains("extrapolated from 16 nodes"));
}

TEST_CASE("no size takes less for each of its bytes than is said of a machine") {
  const Profile profile = on_h100();
  const AllReduceCosts costs(profile);
  for (const std::uint32_t hosts : {1U, 2U, 3U, 16U}) {
    const LinkCosts link = spanning(profile, hosts);
    const double least = costs.least_s_per_byte(8 * hosts, link);
    CHECK(least > 0);
    for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 45; bytes *= 2) {
      CHECK(costs.seconds(8 * hosts, bytes, link) >= least * static_cast<double>(bytes));
    }
  }
  CHECK(costs.least_s_per_byte(8, profile.link) == 0);
}
