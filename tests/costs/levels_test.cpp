#include "costs/levels.hpp"

#include <catch2/catch.hpp>
#include <numeric>

namespace hipress::costs {
namespace {

/// Three nodes of two GPUs, the last node at half speed.
Cluster with_gpus() {
  Cluster cluster;
  cluster.name = "gpus";
  cluster.nodes = 3;
  cluster.link = {.overhead_s = 1e-5, .bandwidth = 1e9, .bandwidth_both_ways = 1e9};
  cluster.host = {0, 1, 2};
  cluster.compute_speed = {1, 1, 0.5};
  cluster.gpus_per_node = 2;
  cluster.gpu_link = {.overhead_s = 2e-6, .bandwidth = 5e9};
  return cluster;
}

TEST_CASE("in one level every GPU is a node, and the GPUs of a node share its link") {
  const Cluster flat = in_one_level(with_gpus()).value();
  CHECK(flat.nodes == 6);
  CHECK(flat.gpus_per_node == 1);
  CHECK(flat.host == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2});
  CHECK(flat.compute_speed == std::vector<double>{1, 1, 1, 1, 0.5, 0.5});
  CHECK(flat.link == with_gpus().link);
  REQUIRE(flat.host_link);
  CHECK(flat.host_link->overhead_s == 2e-6);
  CHECK(flat.host_link->bandwidth == 5e9);
  CHECK(flat.host_link->bandwidth_both_ways == 5e9);
}

TEST_CASE("two levels are what one level was made of") {
  const Cluster two = in_two_levels(in_one_level(with_gpus()).value()).value();
  CHECK(two.nodes == 3);
  CHECK(two.gpus_per_node == 2);
  CHECK(two.gpu_link == with_gpus().gpu_link);
  CHECK(two.host == with_gpus().host);
  CHECK(two.compute_speed == with_gpus().compute_speed);
  CHECK(two.link == with_gpus().link);
  CHECK_FALSE(two.host_link);
}

TEST_CASE("of both levels, the one with so many nodes is taken, else what is given") {
  CHECK(with_nodes(with_gpus(), 6).nodes == 6);
  CHECK(with_nodes(with_gpus(), 3).gpus_per_node == 2);
  CHECK(with_nodes(with_gpus(), 4).nodes == 3);
  CHECK(with_nodes(in_one_level(with_gpus()).value(), 3).gpus_per_node == 2);
}

TEST_CASE("where GPUs cannot be at another level, there is none") {
  Cluster cluster = with_gpus();
  SECTION("one GPU per node") { cluster.gpus_per_node = 1; }
  SECTION("bursts, which hosts with several nodes do not have") { cluster.link.burst_bytes = 1; }
  SECTION("more GPUs than a cluster may have nodes, or 32 bits can count") {
    cluster.gpus_per_node = 1 << 12;
    for (const std::uint32_t nodes : {257u, 1u << 20}) {
      cluster.nodes = nodes;
      cluster.host.resize(nodes);
      std::iota(cluster.host.begin(), cluster.host.end(), 0u);
      cluster.compute_speed.assign(nodes, 1);
      CHECK_FALSE(in_one_level(cluster));
    }
  }
  SECTION("nodes that share a host already") { cluster.host = {0, 0, 1}; }
  SECTION("hosts of different numbers of nodes") {
    cluster = in_one_level(cluster).value();
    cluster.host = {0, 0, 0, 1, 1, 2};
  }
  SECTION("GPUs of different speeds on a host") {
    cluster = in_one_level(cluster).value();
    cluster.compute_speed[1] = 0.5;
  }
  CHECK_FALSE(in_other_levels(cluster));
}

}  // namespace
}  // namespace hipress::costs
