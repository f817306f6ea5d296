#include "replay/flat_cluster.hpp"

#include <catch2/catch.hpp>

using namespace hipress;
using namespace hipress::replay;

namespace {

/// Four nodes, two per host, which NVLink joins. Every host is in a rack of its own.
costs::Cluster hierarchical() {
  costs::Cluster cluster;
  cluster.nodes = 4;
  cluster.host = {0, 0, 1, 1};
  cluster.cores_per_host = 8;
  cluster.compute_speed = {1, 1, 1, 0.5};
  cluster.host_link = costs::LinkCosts{.bandwidth = 300e9};
  cluster.racks = {costs::RackCosts{}};
  return cluster;
}

costs::Cluster flat() {
  costs::Cluster cluster;
  cluster.nodes = 4;
  cluster.host = {0, 0, 0, 0};
  cluster.cores_per_host = 2;
  return cluster;
}

const std::vector<std::string> kOneMachine(4, "a");

}  // namespace

TEST_CASE("a flat cluster is compared as it is") {
  costs::Cluster asked = flat();
  asked.host = {0, 1, 2, 3};
  const Comparable found = comparable(asked, flat(), {.machines = kOneMachine, .threads = true});
  CHECK(found.differs.empty());
  CHECK(found.cluster.host == asked.host);
}

TEST_CASE("threads are compared with the part between nodes, and what is left out is said") {
  costs::Cluster asked = hierarchical();
  const Comparable found = comparable(asked, flat(), {.machines = kOneMachine, .threads = true});
  CHECK(found.differs ==
        "the cluster has links within hosts and racks; these ranks are 4 threads on one machine: "
        "only the part between nodes is compared");
  CHECK_FALSE(costs::is_hierarchical(found.cluster));
  CHECK(found.cluster.host == flat().host);
  CHECK(found.cluster.cores_per_host == 2);
  CHECK(found.cluster.compute_speed == asked.compute_speed);

  asked = flat();
  asked.gpus_per_node = 4;
  const Comparable gpus = comparable(asked, flat(), {.machines = kOneMachine, .threads = true});
  CHECK(gpus.differs ==
        "the cluster has 4 GPUs per node; these ranks are 4 threads on one machine: only the "
        "part between nodes is compared");
  CHECK(gpus.cluster.gpus_per_node == 1);
}

TEST_CASE("processes that lie on machines as the cluster says are predicted as the whole of it") {
  const std::vector<std::string> alike{"b", "b", "a", "a"};
  const Comparable found = comparable(hierarchical(), flat(), {.machines = alike});
  CHECK(found.differs.empty());
  CHECK(found.cluster.host_link);
  CHECK(found.cluster.racks.size() == 1);

  for (const std::vector<std::string>& machines :
       {std::vector<std::string>{"a", "b", "a", "b"}, {"a", "a", "b", "c"}, {"", "", "a", "a"}}) {
    const Comparable other = comparable(hierarchical(), flat(), {.machines = machines});
    CHECK_FALSE(costs::is_hierarchical(other.cluster));
    CHECK(other.differs ==
          "the cluster has links within hosts and racks; these ranks are 4 processes with one "
          "device each: only the part between nodes is compared");
  }
}

TEST_CASE("a rank whose machine is not known is on one of its own") {
  costs::Cluster asked = hierarchical();
  asked.host = {0, 1, 2, 3};
  asked.host_link = std::nullopt;
  const std::vector<std::string> unknown(4);
  CHECK(comparable(asked, flat(), {.machines = unknown}).cluster.racks.size() == 1);
}
