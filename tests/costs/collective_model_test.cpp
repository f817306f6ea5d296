#include "costs/collective_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "io/error.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;

constexpr double kGiB = 1 << 30;

CollectiveWay way(const std::string& machine, Ranks ranks, double bytes,
                  Operation operation = Operation::kAllReduce, const std::string& algorithm = {}) {
  return collective_time(read_machine(machine), ranks, operation, bytes, algorithm);
}

TEST_CASE("a ring of one host moves 2(n-1)/n of the bytes over each GPU's NVLink") {
  // 16 GiB on 8 H200 take 1.75 · 17.18e9 / (0.844 · 450e9) = 79.2 ms on NVLink, 0.18 ps · 17.18e9 =
  // 3.1 ms to read and write the bytes, and 24 + 14 · 4.4 = 86 us for the launch and 14 steps.
  const double expected = 1.75 * 16 * kGiB / (0.844 * 450e9) + 0.18e-12 * 16 * kGiB + 85.6e-6;
  const CollectiveWay ring = way("hgx-h200", {1, 8}, 16 * kGiB, Operation::kAllReduce, "ring");
  CHECK(ring.protocol == "Simple");
  CHECK(ring.seconds == Approx(expected));
  // An all-gather has half of the steps.
  const CollectiveWay gather = way("hgx-h200", {1, 8}, 16 * kGiB, Operation::kAllGather);
  CHECK(gather.algorithm == "ring");
  CHECK(gather.seconds ==
        Approx(0.875 * 16 * kGiB / (0.844 * 450e9) + 0.18e-12 * 16 * kGiB + 54.8e-6));
}

TEST_CASE("the switch sums from 5 GPUs on, as the library chooses, and a ring serves fewer") {
  for (const std::uint32_t gpus : {2U, 4U, 5U, 6U, 7U, 8U}) {
    INFO(gpus);
    CHECK(way("hgx-h200", {1, gpus}, 8 * kGiB).algorithm == (gpus < 5 ? "ring" : "nvls"));
  }
  // The switch of A100s cannot sum.
  CHECK(way("dgx-a100", {1, 8}, 8 * kGiB).algorithm == "ring");
}

TEST_CASE("hosts share their cards: one ring a rail, and trees send twice from four hosts on") {
  // 8 cards of 400 Gbit/s at 96 % carry 384e9 bytes/s. With 16 hosts, trees send each byte twice.
  const CollectiveWay many = way("hgx-h100", {16, 128}, 8 * kGiB);
  CHECK(many.algorithm == "nvls_tree");
  CHECK(many.seconds == Approx(8 * kGiB / (384e9 / 2)).epsilon(0.02));
  // An all-gather is a ring over all rails: (n-1)/n of the bytes at the lower of the cards' 384e9
  // and NVLink's 0.844 · 450e9 = 379.8e9 bytes/s; 0.18 ps per byte; 112 steps of 4.4 us within
  // hosts and 15 of 14 + 2.5 us between them; a launch of 24 us; 160 + 12 · 2.5 us of fill time.
  const CollectiveWay gather = way("hgx-h100", {16, 128}, 8 * kGiB, Operation::kAllGather);
  const double latency_s = (24 + 112 * 4.4 + 15 * 16.5 + 160 + 30) * 1e-6;
  CHECK(gather.seconds ==
        Approx(127.0 / 128 * 8 * kGiB / 379.8e9 + 0.18e-12 * 8 * kGiB + latency_s));
  // If one GPU of each host takes part, it uses one of eight cards.
  const CollectiveWay rail = way("hgx-h100", {8, 8}, 8 * kGiB, Operation::kAllGather);
  CHECK(rail.seconds == Approx(7.0 / 8 * 8 * kGiB / (384e9 / 8)).epsilon(0.02));
}

TEST_CASE("hosts of one GPU without a fabric choose by their cards") {
  // 4 hosts, each with a card of 1 Gbit/s, of which TCP reaches 94 %: 1.5 · 256 MiB at 117.5 MB/s.
  const CollectiveWay large = way("desktop", {4, 4}, kGiB / 4);
  CHECK(large.protocol == "Simple");
  CHECK(large.seconds == Approx(1.5 * kGiB / 4 / 117.5e6).epsilon(0.01));
  CHECK(large.planned_s < 10);
}

TEST_CASE("steps within hosts take NVLink's time, and steps between them the network's") {
  // 64 GPUs on 8 hosts, protocol LL: of 63 steps of a small all-gather, 7 cross the network and
  // take 1.5 + 2.5 us, and 56 take 1.8 us: with the launch 8 + 56 · 1.8 + 7 · 4 = 136.8 us. The
  // 63/64 KiB take w = 0.026 us at 39 GB/s, the maximum of LL between hosts with Intel's
  // processors. The pipeline takes another 2 · sqrt(24 us · w) to fill, at most 30 us.
  const CollectiveWay small = way("hgx-h100", {8, 64}, 1024, Operation::kAllGather);
  CHECK(small.protocol == "LL");
  const double wire_us = 63.0 / 64 * 1024 / 39e3;
  CHECK(small.seconds == Approx((136.8 + wire_us + 2 * std::sqrt(24 * wire_us)) * 1e-6));
  const double longer_us = 63.0 / 64 * 65536 / 39e3;
  const CollectiveWay longer = way("hgx-h100", {8, 64}, 65536, Operation::kAllGather);
  CHECK(longer.protocol == "LL");
  const double touch_us = 0.18e-6 * 65536;  // to read and write the bytes
  CHECK(longer.seconds ==
        Approx((136.8 + touch_us + longer_us + 2 * std::sqrt(24 * longer_us)) * 1e-6));
}

TEST_CASE("figures that nothing was fitted on are met") {
  // 8 GPUs of an NVL72 reach 811 GB/s of bus bandwidth, which is 2 · 7/8 of the bytes per second.
  CHECK(1.75 * 16 * kGiB / way("gb200-nvl72", {1, 8}, 16 * kGiB).seconds ==
        Approx(811e9).epsilon(0.05));
  // With 512 MiB, 248 hosts of 8 H200 reach about 350 GB/s of bus bandwidth, which is 2 · bytes per
  // second.
  CHECK(2 * kGiB / 2 / way("hgx-h200", {248, 1984}, kGiB / 2).seconds ==
        Approx(350e9).epsilon(0.05));
  // The smallest all-reduces of 16 hosts of 8 H100 take 62 us.
  CHECK(way("nd-h100-v5", {16, 128}, 64).seconds == Approx(62e-6).epsilon(0.1));
}

TEST_CASE("LL128 needs a network that keeps words whole") {
  const auto has_words = [](const std::string& machine, Ranks ranks) {
    const std::vector<CollectiveWay> ways =
        collective_ways(read_machine(machine), ranks, Operation::kAllReduce, 1e6);
    return std::ranges::any_of(ways,
                               [](const CollectiveWay& one) { return one.protocol == "LL128"; });
  };
  CHECK(has_words("a3-megagpu-8g", {1, 8}));
  CHECK_FALSE(has_words("a3-megagpu-8g", {2, 16}));
  CHECK(has_words("hgx-h100", {2, 16}));
  CHECK_FALSE(has_words("4xa100-shm", {1, 4}));
}

TEST_CASE("messages of an all-to-all share a host's cards") {
  // 64 MB per rank on 2 hosts: half of them leave the host at an eighth of 384e9 bytes/s. The
  // launch, 15 messages and the latency add 24 + 30 + 2.5 us.
  const CollectiveWay all = way("hgx-h100", {2, 16}, 64e6, Operation::kAllToAll);
  CHECK(all.algorithm == "p2p");
  CHECK(all.seconds == Approx(32e6 / 48e9 + 56.5e-6));
}

TEST_CASE("a GPU alone has nothing to do, and more bytes never take less by one way") {
  CHECK(way("desktop", {1, 1}, kGiB).seconds == 0);
  for (const char* algorithm : {"ring", "tree", "nvls_tree"}) {
    double before = 0;
    for (double bytes = 8; bytes <= 16 * kGiB; bytes *= 2) {
      std::vector<CollectiveWay> ways =
          collective_ways(read_machine("p5.48xlarge"), {2, 16}, Operation::kAllReduce, bytes);
      std::erase_if(ways, [&](const CollectiveWay& one) {
        return one.algorithm != algorithm || one.protocol != "Simple";
      });
      REQUIRE(ways.size() == 1);
      CHECK(ways[0].seconds > before);
      before = ways[0].seconds;
    }
  }
}

TEST_CASE("collectives that cannot be are refused") {
  CHECK_THROWS_WITH(way("p5.48xlarge", {2, 15}, 1e6), Contains("give a multiple of the hosts"));
  CHECK_THROWS_WITH(way("p5.48xlarge", {1, 16}, 1e6), Contains("at most 8 on each"));
  CHECK_THROWS_WITH(way("dgx-a100", {1, 8}, 1e6, Operation::kAllReduce, "nvls"),
                    Contains("have no 'nvls': give one of ring/LL, tree/LL"));
  CHECK_THROWS_WITH(operation_named("gather"), Contains("must be one of all_reduce"));
}

}  // namespace
}  // namespace hipress::costs
