#include "sim/burst.hpp"

#include <catch2/catch.hpp>

#include "io/error.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::kRaw;

constexpr std::int64_t kBurstBytes = 20'000;
constexpr std::int64_t kBurst = kBurstBytes * kPsPerByte;

costs::Cluster bursty_cluster(std::uint32_t nodes) {
  costs::Cluster cluster = test_cluster(nodes);
  cluster.link.burst_bytes = kBurstBytes;
  return cluster;
}

TEST_CASE("k messages of S into one receiver that has idled take k·(α + S/B) less its burst") {
  // All buckets are full at first. The server's egress still has a full one when it begins to send
  // the mean back, so both halves take equally long.
  for (const std::int64_t nodes : {2, 3, 5, 8}) {
    const std::int64_t bytes = 4 * 32 * 999;
    const auto graph = test_graph(test_model({32 * 999}), "ps", nodes, kRaw, 1);
    const std::int64_t k = nodes - 1;
    CHECK(run(graph, bursty_cluster(nodes), Network::kFair).iteration.count() ==
          2 * (k * (kOverhead + bytes * kPsPerByte) - kBurst));
  }
}

TEST_CASE("a message that the burst covers takes the latency alone") {
  costs::Cluster cluster = bursty_cluster(2);
  cluster.link.latency_s = 7e-6;
  const auto graph = test_graph(test_model({32}), "ps", 2, kRaw, 1);
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 2 * 7 * kUs);
}

TEST_CASE("on a shared host, what goes in a burst takes half of its CPU work: a core at each end") {
  // 128 bytes take 256 ns of CPU work, 128 ns at each end, where a core is free. They go to the
  // server, and the mean comes back.
  costs::Cluster cluster = bursty_cluster(2);
  cluster.cores_per_host = 2;
  cluster.host = {0, 0};
  cluster.link.core_s_per_byte = 2e-9;
  const auto graph = test_graph(test_model({32}), "ps", 2, kRaw, 1);
  CHECK(run(graph, cluster, Network::kFair).iteration.count() == 2 * 128'000);
}

TEST_CASE("a port's credit grows by the time that it idles, up to its depth") {
  Bursts bursts(3, 100);
  CHECK(bursts.take(0, 1, 30, 0) == 30);
  CHECK(bursts.take(0, 1, 90, 10) == 80);   // credit: 100 - 30 + 10
  CHECK(bursts.take(0, 1, 90, 15) == 0);    // credit: -10 + 5
  CHECK(bursts.take(0, 2, 50, 135) == 25);  // port 0: -95 + 120; port 2 is full
  CHECK(bursts.take(2, 1, 70, 135) == 25);  // port 1: -95 + 120; port 2: 50
  CHECK(bursts.take(0, 1, 500, 10'000) == 100);
}

TEST_CASE("a negative burst is refused") {
  costs::Cluster cluster = test_cluster(2);
  cluster.link.burst_bytes = -1;
  const auto graph = test_graph(test_model({32}), "ps", 2, kRaw, 1);
  CHECK_THROWS_AS(run(graph, cluster, Network::kFair), io::InputError);
}

}  // namespace
}  // namespace hipress::sim
