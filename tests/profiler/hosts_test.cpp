// Tests which ranks share a machine, by made-up boot ids, and which cores belong to which rank.

#include "profiler/hosts.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "io/processors.hpp"
#include "job/connect.hpp"
#include "replay/replay.hpp"
#include "tests/profiler/bound.hpp"

namespace hipress::profiler {
namespace {

/// Hosts as each rank sees them. Rank r has boot id boots[r]; its thread first calls `before`.
std::vector<Hosts> hosts_of(const std::vector<std::string>& boots,
                            const std::function<void(std::size_t rank)>& before = {}) {
  std::vector<Hosts> hosts(boots.size(), Hosts(Options{.algorithms = {}}));
  job::run_thread_ranks(
      "memory", static_cast<int>(boots.size()), 30, [&](transport::Endpoint& endpoint) {
        const auto rank = static_cast<std::size_t>(endpoint.rank());
        if (before) before(rank);
        hosts[rank] = Hosts(Options{.algorithms = {},
                                    .nodes = static_cast<std::uint32_t>(boots.size()),
                                    .endpoint = &endpoint,
                                    .boot = boots[rank]});
      });
  return hosts;
}

TEST_CASE("ranks that are threads share this machine and all of its cores") {
  const Hosts hosts(Options{.algorithms = {}});
  CHECK(hosts.count() == 1);
  CHECK(hosts.far() == 1);
  CHECK(hosts.own_cores() == io::usable_cores());
  CHECK(hosts.cores() == static_cast<int>(io::usable_cores().size()));
}

TEST_CASE("processes with one boot id share a machine, and each core is counted once") {
  const std::vector<Hosts> ranks = hosts_of({"a", "a", "a"});
  for (const Hosts& hosts : ranks) {
    CHECK(hosts.count() == 1);
    CHECK(hosts.far() == 1);
    CHECK(hosts.cores() == static_cast<int>(io::usable_cores().size()));
  }
  CHECK(ranks[0].own_cores() == io::usable_cores());
  CHECK(ranks[1].own_cores().empty());
  CHECK(ranks[2].own_cores().empty());
}

TEST_CASE("processes with several boot ids are on several machines") {
  const std::vector<Hosts> ranks = hosts_of({"a", "a", "b", "c", "b", "a"});
  for (const Hosts& hosts : ranks) {
    CHECK(hosts.count() == 3);
    CHECK(hosts.far() == 2);
  }
  for (const std::size_t first : {0u, 2u, 3u})
    CHECK(ranks[first].own_cores() == io::usable_cores());
  for (const std::size_t other : {1u, 4u, 5u}) CHECK(ranks[other].own_cores().empty());
  CHECK(hosts_of({"a", "b"})[1].far() == 1);
}

TEST_CASE("a machine that is not known is nobody else's") {
  for (const Hosts& hosts : hosts_of({"", ""})) {
    CHECK(hosts.count() == 2);
    CHECK(hosts.far() == 1);
    CHECK(hosts.own_cores() == io::usable_cores());
  }
}

TEST_CASE("ranks that are bound to cores count them together, and on the smallest machine") {
  const std::vector<int> usable = io::usable_cores();
  if (usable.size() < 2) return;
  const auto bind = [&](std::size_t rank) {
    if (rank < 2) bind_to(usable[rank]);
  };
  const std::vector<Hosts> together = hosts_of({"a", "a"}, bind);
  CHECK(together[0].cores() == 2);
  CHECK(together[1].cores() == 2);
  CHECK(together[0].own_cores() == std::vector{usable[0]});
  CHECK(together[1].own_cores() == std::vector{usable[1]});
  for (const Hosts& hosts : hosts_of({"a", "b", "c"}, bind)) CHECK(hosts.cores() == 1);
}

}  // namespace
}  // namespace hipress::profiler
