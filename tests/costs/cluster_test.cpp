#include "costs/cluster.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "costs/host_pairs.hpp"
#include "io/error.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;

Profile profile_of(bool shared_host) {
  Profile profile;
  profile.name = "tiny";
  profile.cores = 8;
  profile.core_turn_s = 1e-3;
  profile.shared_host = shared_host;
  profile.link = {1e-5, 1e9, 8e8, 2e-5, 1e-10, 1e-6};
  return profile;
}

/// Reads a cluster from a file that holds `text`.
Cluster read_text(const std::string& text, std::uint32_t nodes,
                  const Profile& profile = profile_of(false)) {
  const tests::TemporaryFolder folder;
  return read_cluster(folder.file("cluster.yaml", text), profile, nodes);
}

TEST_CASE("nodes are machines of their own, unless the profile was measured on one") {
  CHECK(cluster_from_profile(profile_of(false), 3).host == std::vector<std::uint32_t>{0, 1, 2});
  const Cluster shared = cluster_from_profile(profile_of(true), 3);
  CHECK(shared.host == std::vector<std::uint32_t>{0, 0, 0});
  CHECK(shared.cores_per_host == 8);
  CHECK(shared.core_turn_s == 1e-3);
  CHECK(shared.compute_speed == std::vector<double>{1, 1, 1});
  CHECK(shared.link == profile_of(true).link);
}

TEST_CASE("a cluster file overrides what it names and keeps the rest of the profile") {
  const Cluster cluster = read_text(
      "name: lab\nnodes: 4\nnodes_per_host: 2\ncores_per_host: 16\ncore_turn: 4ms\n"
      "link: {bandwidth: 10Gbps}\ncompute_speed: {3: 0.5}\n",
      0);
  CHECK(cluster.name == "lab");
  CHECK(cluster.nodes == 4);
  CHECK(cluster.host == std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK(cluster.cores_per_host == 16);
  CHECK(cluster.core_turn_s == 4e-3);
  CHECK(cluster.link.bandwidth == 1.25e9);            // 10 Gbit/s / 8
  CHECK(cluster.link.bandwidth_both_ways == 1.25e9);  // defaults to the bandwidth
  CHECK(cluster.link.overhead_s == 1e-5);
  CHECK(cluster.compute_speed == std::vector<double>{1, 1, 1, 0.5});
}

TEST_CASE("the number of nodes comes from the file or from the caller, and must agree") {
  CHECK(read_text("nodes: 4\n", 4).nodes == 4);
  CHECK(read_text("name: any\n", 5).nodes == 5);
  CHECK_THROWS_WITH(read_text("nodes: 4\n", 8), Contains(":1") && Contains("4") && Contains("8"));
  CHECK_THROWS_WITH(read_text("name: any\n", 0), Contains("nodes"));
}

TEST_CASE("a cluster file may have hosts of several nodes, and racks of hosts") {
  const Cluster cluster = read_text(
      "nodes: 6\nnodes_per_host: 2\nlink: {bandwidth: 10Gbps, latency: 5us}\n"
      "host_link: {bandwidth: 300GB/s, overhead: 2us}\n"
      "rack: {hosts: 2, oversubscription: 4, latency: 3us}\n",
      0);
  CHECK(cluster.host_link->bandwidth_both_ways == 300e9);
  CHECK(cluster.host_link->latency_s == 0);  // the profile's latency is that of a different link
  CHECK(path(cluster, 0, 1) == Path::kWithinHost);
  CHECK(path(cluster, 1, 2) == Path::kBetweenHosts);
  CHECK(path(cluster, 4, 3) == Path::kBetweenRacks);
  CHECK(rack_bandwidth(cluster) == 2 * 1.25e9 / 4);
  const LinkCosts far = path_costs(cluster, Path::kBetweenRacks);
  CHECK(far.bandwidth == 2 * 1.25e9 / 4);
  CHECK(far.latency_s == Approx(8e-6));
  CHECK_FALSE(is_uniform(cluster));
  CHECK(is_uniform(read_text("nodes: 4\nrack: {hosts: 4}\n", 0)));
  CHECK(is_uniform(read_text("nodes: 4\nnodes_per_host: 4\nhost_link: {bandwidth: 1GB/s}\n", 0)));

  CHECK_THROWS_WITH(read_text("nodes: 4\nhost_link: {latency: 1us}\n", 0),
                    Contains(":2") && Contains("bandwidth"));
  CHECK_THROWS_WITH(read_text("nodes: 4\nrack: {oversubscription: 2}\n", 0),
                    Contains(":2") && Contains("hosts"));
  CHECK_THROWS_WITH(read_text("nodes: 4\nrack: {hosts: 0}\n", 0), Contains(":2"));
  CHECK_THROWS_WITH(read_text("nodes: 4\nrack: {hosts: 2, oversubscription: 0}\n", 0),
                    Contains(":2") && Contains("1 to 1000"));
  CHECK_THROWS_WITH(read_text("nodes: 4\nnodes_per_host: 2\nrack: {hosts: 2}\n", 0),
                    Contains(":3") && Contains("host_link"));
}

TEST_CASE("the slow link between two nodes is found, whichever comes first") {
  Cluster cluster = cluster_from_profile(profile_of(false), 12);
  for (std::uint32_t node = 0; node < cluster.nodes; ++node) cluster.host[node] = node / 2;
  cluster.slow_links = {{.a = 2, .b = 4}, {.a = 0, .b = 1}, {.a = 0, .b = 5}};
  const HostPairs links(cluster.slow_links);
  for (std::uint32_t from = 0; from < cluster.nodes; ++from) {
    for (std::uint32_t to = 0; to < cluster.nodes; ++to) {
      std::optional<std::uint32_t> expected;
      for (std::uint32_t place = 0; place < 3; ++place) {
        const SlowLink& link = cluster.slow_links[place];
        const bool forth = from / 2 == link.a && to / 2 == link.b;
        if (forth || (from / 2 == link.b && to / 2 == link.a)) expected = place;
      }
      CHECK(links.find(cluster.host[from], cluster.host[to]) == expected);
    }
  }
}

TEST_CASE("a node may have several GPUs, with a link between them") {
  const Cluster cluster =
      read_text("nodes: 2\ngpus_per_node: 8\ngpu_link: {bandwidth: 100GB/s, overhead: 2us}\n", 0);
  CHECK(cluster.gpus_per_node == 8);
  // (G-1)·o + (G-1)/G·S/B
  CHECK(local_s(cluster, 800'000'000) == Approx(7 * 2e-6 + 7e-3));
  CHECK(local_s(read_text("nodes: 2\n", 0), 800) == 0);
  CHECK_THROWS_WITH(read_text("nodes: 2\ngpus_per_node: 8\n", 0),
                    Contains(":2") && Contains("gpu_link"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ngpus_per_node: 0\n", 0), Contains(":2"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ngpu_link: {overhead: 1us}\n", 0),
                    Contains(":2") && Contains("bandwidth"));
}

TEST_CASE("a link's rate is what it is sold as, of which it carries the profile's share") {
  Profile profile = profile_of(false);  // 1 GB/s
  profile.link_rate = 10e9 / 8;         // 1 GB/s is 80 % of 10 Gbit/s
  const auto read = [&](const std::string& text) { return read_text(text, 0, profile); };
  const Cluster cluster = read(
      "nodes: 4\nnodes_per_host: 2\nlink: {rate: 100Gbps}\nhost_link: {rate: 1TB/s}\n"
      "gpus_per_node: 2\ngpu_link: {rate: 200GB/s}\n");
  CHECK(cluster.link.bandwidth == Approx(10e9));
  CHECK(cluster.link.bandwidth_both_ways == Approx(10e9));
  CHECK(cluster.link.latency_s == 2e-5);  // from the profile
  CHECK(cluster.host_link->bandwidth == Approx(800e9));
  CHECK(cluster.gpu_link.bandwidth == Approx(160e9));
  const std::string sites =
      "nodes: 4\nsites: {nodes: 2, link: {rate: 1Gbps}, pairs: [{between: [0, 1], rate: 500Mbps}]}";
  CHECK(read(sites).link.bandwidth == Approx(100e6));
  CHECK(read(sites).slow_links[0].bandwidth == Approx(50e6));
  CHECK(read("nodes: 2\nslow_links: [{between: [0, 1], rate: 1Gbps}]").slow_links[0].bandwidth ==
        Approx(100e6));

  for (const char* both :
       {"link: {bandwidth: 1GB/s, rate: 10Gbps}", "host_link: {bandwidth: 1GB/s, rate: 10Gbps}",
        "gpu_link: {bandwidth: 1GB/s, rate: 10Gbps}",
        "slow_links: [{between: [0, 1], bandwidth: 1GB/s, rate: 10Gbps}]",
        "sites: {nodes: 1, link: {bandwidth: 1GB/s, rate: 10Gbps}}"}) {
    CHECK_THROWS_WITH(read("nodes: 4\n" + std::string(both)),
                      Contains(":2: ") && Contains("not both"));
  }
  CHECK_THROWS_WITH(read("nodes: 2\nslow_links: [{between: [0, 1], rate: 20Gbps}]"),
                    Contains(":2: slow_links[0].rate: is more than"));
  profile.link_rate = 0;
  CHECK_THROWS_WITH(read("nodes: 4\nlink: {rate: 100Gbps}"),
                    Contains(":2: link.rate") && Contains("give bandwidth here"));
}

TEST_CASE("another bandwidth is that of another network, without the profile's burst") {
  Profile profile = profile_of(false);
  profile.link.burst_bytes = 96'000;
  CHECK(read_text("nodes: 2\nlink: {latency: 1ms}", 0, profile).link.burst_bytes == 96'000);
  CHECK(read_text("nodes: 2\nlink: {bandwidth: 1Gbps}", 0, profile).link.burst_bytes == 0);
  CHECK(read_text("nodes: 2\nlink: {bandwidth: 1Gbps, burst: 1kB}", 0, profile).link.burst_bytes ==
        1000);
}

TEST_CASE("a cluster file may have sites of several nodes, with a slow network between") {
  const std::string sites = "sites: {nodes: 4, link: {bandwidth: 1Gbps, latency: 30ms}}\n";
  const Cluster cluster = read_text("nodes: 8\nlink: {bandwidth: 10Gbps}\n" + sites, 0);
  CHECK(cluster.nodes == 2);
  CHECK(cluster.gpus_per_node == 4);
  REQUIRE(cluster.site);
  CHECK(cluster.site->nodes == 4);
  CHECK(cluster.site->link.bandwidth == 1.25e9);
  CHECK(cluster.site->link.latency_s == 2e-5);  // from the profile
  CHECK(cluster.link.bandwidth == 1.25e8);
  CHECK(cluster.link.latency_s == 0.03);
  CHECK(cluster.link.overhead_s == 0);
  CHECK(cluster.host == std::vector<std::uint32_t>{0, 1});
  // Between the machines of a site: 3 hops of o + L, and 3/4 of the bytes.
  CHECK(local_s(cluster, 1'000'000) == Approx(3 * (1e-5 + 2e-5) + 0.75e6 / 1.25e9));
  CHECK(local_s_per_byte(cluster) == Approx(0.75 / 1.25e9));

  const Cluster of_gpus = read_text(
      "gpus_per_node: 8\ngpu_link: {bandwidth: 100GB/s, overhead: 2us}\n"
      "link: {bandwidth: 10Gbps}\ncompute_speed: {5: 0.5}\n" +
          sites,
      3);
  CHECK(of_gpus.nodes == 3);
  CHECK(of_gpus.gpus_per_node == 32);
  CHECK(gpus_per_machine(of_gpus) == 8);
  CHECK(of_gpus.compute_speed == std::vector<double>{1, 0.5, 1});  // node 5 is in the second site
  CHECK(local_s(of_gpus, 1'000'000) ==
        Approx(7 * 2e-6 + 0.875e6 / 1e11 + 3 * (1e-5 + 2e-5) + 0.75e6 / 1.25e9));

  const Cluster pairs = read_text(
      "nodes: 12\nsites:\n  nodes: 4\n  link: {bandwidth: 1Gbps, latency: 30ms}\n"
      "  pairs:\n  - {between: [2, 0], bandwidth: 100Mbps}\n"
      "  - {between: [0, 1], latency: 5ms}\n",
      0);
  REQUIRE(pairs.slow_links.size() == 2);
  CHECK(slow_link_costs(pairs, 0).bandwidth == 1.25e7);
  CHECK(slow_link_costs(pairs, 0).latency_s == 0.03);
  CHECK(slow_link_costs(pairs, 1).bandwidth == 1.25e8);
  CHECK(slow_link_costs(pairs, 1).latency_s == 0.005);
  // The ring's lowest bandwidth is from 2 to 0, its highest latency from 1 to 2.
  CHECK(ring_costs(pairs).bandwidth == 1.25e7);
  CHECK(ring_costs(pairs).latency_s == 0.03);
}

TEST_CASE("a cluster file's faults about sites are named with line and remedy") {
  const auto refusal = [](const std::string& text, std::uint32_t nodes = 0) {
    try {
      read_text(text, nodes);
    } catch (const io::InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string link = "link: {bandwidth: 1Gbps}";
  CHECK_THAT(refusal("nodes: 9\nsites: {nodes: 4, " + link + "}\n"),
             Contains(":1") && Contains("9 nodes are no whole number of sites of 4"));
  CHECK_THAT(refusal("nodes: 8\nsites: {nodes: 4, " + link + "}\n", 8),
             Contains(":1") && Contains("2 sites of 4 nodes, but 8 sites are asked for"));
  CHECK_THAT(refusal("sites: {nodes: 4, " + link + "}\n"), Contains("nodes"));
  CHECK_THAT(refusal("nodes: 8\nsites: {nodes: 0, " + link + "}\n"), Contains(":2"));
  CHECK_THAT(refusal("nodes: 8\nsites: {" + link + "}\n"), Contains("nodes"));
  CHECK_THAT(refusal("nodes: 8\nsites: {nodes: 4}\n"), Contains("link"));
  CHECK_THAT(refusal("nodes: 8\nsites: {nodes: 4, link: {latency: 1ms}}\n"),
             Contains(":2") && Contains("bandwidth"));
  CHECK_THAT(refusal("nodes: 8\nsites: {nodes: 4, speed: 3, " + link + "}\n"), Contains("speed"));
  CHECK_THAT(refusal("nodes: 8\nnodes_per_host: 2\nsites: {nodes: 4, " + link + "}\n"),
             Contains(":2") && Contains("not in a cluster of sites"));
  CHECK_THAT(refusal("nodes: 8\nlink: {burst: 1MB}\nsites: {nodes: 4, " + link + "}\n"),
             Contains(":3") && Contains("has no bursts"));
  CHECK_THAT(refusal("sites: {nodes: 4096, " + link + "}\n", 1 << 20),
             Contains(":1") && Contains("more than this simulates"));
  CHECK_THAT(refusal("nodes: 1048576\ngpus_per_node: 4\ngpu_link: {bandwidth: 1GB/s}\n"
                     "sites: {nodes: 524288, " +
                     link + "}\n"),
             Contains(":4") && Contains("more than this simulates"));
  const auto pairs = [&](const std::string& list) {
    return refusal("nodes: 8\nsites: {nodes: 4, " + link + ", pairs: " + list + "}\n");
  };
  CHECK_THAT(pairs("[{between: [0, 2]}]"), Contains(":2"));
  CHECK_THAT(pairs("[{between: [1, 1]}]"), Contains("two sites, not one with itself"));
  CHECK_THAT(pairs("[{between: 3}]"), Contains("name two sites"));
  CHECK_THAT(pairs("[{between: [0, 1], bandwidth: 2Gbps}]"),
             Contains("more than the sites' own link carries"));
  CHECK_THAT(pairs("[{between: [0, 1]}, {between: [1, 0]}]"), Contains("there already"));
}

TEST_CASE("a cluster file's faults are named with file and line") {
  CHECK_THROWS_WITH(read_text("nodes: 0\n", 0), Contains("cluster.yaml:1"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nnodez: 3\n", 0), Contains(":2") && Contains("nodez"));
  CHECK_THROWS_WITH(read_text("nodes: 2\noverlap: {compute_codec: 9}\n", 0),
                    Contains(":2") && Contains("1 to 8 (1: no slower together"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nlink: {bandwidth: 10}\n", 0),
                    Contains(":2") && Contains("Gbps"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nlink: {speed: 10Gbps}\n", 0),
                    Contains(":2") && Contains("speed"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ncompute_speed: {2: 0.5}\n", 0),
                    Contains(":2") && Contains("node"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ncompute_speed: {1: 0}\n", 0),
                    Contains(":2") && Contains("1 to 1000"));
  for (const char* factor : {"-1", "1e-30", "1e30", ".nan"}) {
    CAPTURE(factor);
    CHECK_THROWS_WITH(read_text(std::string("nodes: 2\ncompute_speed: {1: ") + factor + "}\n", 0),
                      Contains(":2"));
    CHECK_THROWS_WITH(
        read_text(std::string("nodes: 2\nrack: {hosts: 1, oversubscription: ") + factor + "}\n", 0),
        Contains(":2"));
  }
  CHECK_THROWS_WITH(read_text("nodes: 2\ncompute_speed: {1: 1e30}\n", 0),
                    Contains("1 to 1000") && Contains("0.5 half as fast"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nnodes_per_host: 0\n", 0), Contains(":2"));
}

}  // namespace
}  // namespace hipress::costs
