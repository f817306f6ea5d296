#include "costs/fabric.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "costs/description.hpp"
#include "costs/machine_options.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::complaint;
using tests::TemporaryFolder;

const std::string kHosts =
    "nodes: 16\nnodes_per_host: 8\nlink: {bandwidth: 3200Gbps}\n"
    "host_link: {bandwidth: 450GB/s}\n";

Cluster cluster_of(const std::string& text) {
  const TemporaryFolder folder;
  return load({.cluster = folder.file("c.yaml", text)}, 0, 16).cluster;
}

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  return complaint([&] { load({.cluster = folder.file("c.yaml", text)}, 0, 16); });
}

TEST_CASE("a node sends to other hosts by one card, and collectives by all") {
  const Cluster cluster = cluster_of(kHosts + "cards: 4\n");
  CHECK(cluster.cards == CardCosts{.count = 4, .nodes = 2});
  CHECK(path_costs(cluster, Path::kBetweenHosts).bandwidth == 400e9 / 4);
  CHECK(path_costs(cluster, Path::kWithinHost).bandwidth == 450e9);
  CHECK(ring_costs(cluster).bandwidth == 400e9);
  // Nodes 0 and 1 share card 0; nodes 8 and 9 share card 4, the first of the second host.
  CHECK(card_of(cluster, 1) == 0);
  CHECK(card_of(cluster, 8) == 4);
  CHECK(rails(cluster) == 8);
  CHECK(cluster_of(kHosts).cards == CardCosts{});
  CHECK(rails(cluster_of(kHosts)) == 1);
}

TEST_CASE("each level of racks carries a share of what comes from below") {
  const Cluster cluster = cluster_of(
      "nodes: 64\nlink: {bandwidth: 1GB/s, latency: 5us}\nrack:\n"
      "  - {hosts: 8, oversubscription: 2, latency: 1us}\n"
      "  - {hosts: 32, oversubscription: 4, latency: 2us}\n");
  CHECK(path(cluster, 0, 7) == Path::kBetweenHosts);
  CHECK(path(cluster, 7, 8) == between_racks(1));
  CHECK(path(cluster, 31, 32) == between_racks(2));
  CHECK(levels_of(between_racks(2)) == 2);
  CHECK(rack_bandwidth(cluster, 0) == 8e9 / 2);
  CHECK(rack_bandwidth(cluster, 1) == 32e9 / 2 / 4);
  CHECK(path_costs(cluster, between_racks(2)).latency_s == Approx(8e-6));
  CHECK(racks_below(cluster) == std::vector<std::uint32_t>{0, 8, 10});
  CHECK(describe_racks(cluster) == "racks of 8 hosts 2:1 oversubscribed, of 32 hosts 4:1");
  // In an exchange, each node sends 32/63 of its bytes to the other half; 32 nodes share 4 GB/s.
  const LinkCosts all = group_network(cluster, 64, 1, Pattern::kExchange).link;
  CHECK(all.bandwidth == Approx(4e9 / (32 * 32 / 63.0)));
  CHECK(all.latency_s == Approx(8e-6));
  // A ring leaves each rack once.
  CHECK(group_network(cluster, 64, 1, Pattern::kRing).link.bandwidth == 1e9);
}

TEST_CASE("a cluster file with a directive that is cut anywhere is refused, or means the same") {
  const TemporaryFolder folder;
  const std::string text = io::read_file(io::data_file("examples/cluster_fat_tree.yaml"));
  int same = 0;
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    for (const char* end : {"", "\n"}) {  // cut at a byte, and with the line end that an editor
                                          // adds
      const std::string path = folder.file("c.yaml", text.substr(0, bytes) + end);
      try {
        load({.cluster = path}, 0, 16);
        ++same;
      } catch (const io::InputError& error) {
        CHECK_THAT(error.what(), Contains("c.yaml"));
      }
    }
  }
  CHECK(same == 2);  // only the file's last line end may be missing
}

TEST_CASE("a cluster file may name a machine") {
  const TemporaryFolder folder;
  const std::string file = folder.file(
      "c.yaml",
      "name: lab\nmachine: hgx-h100\nhosts: 32\nrack: {hosts: 16, oversubscription: 4}\n");
  const LoadedMachines loaded = load({.cluster = file}, 0, 16);
  const Cluster& cluster = loaded.cluster;
  CHECK(cluster.name == "lab");
  CHECK(cluster.nodes == 256);
  CHECK(nodes_of_cluster(file) == 256);
  CHECK(loaded.profile.name == "hgx-h100");
  CHECK(MachineOptions{.cluster = file}.names_profile());
  // Each GPU has one of 8 cards of 400 Gbit/s, which reach 96 %.
  const double host = 8 * 50e9 * 0.96;
  CHECK(path_costs(cluster, Path::kBetweenHosts).bandwidth == Approx(host / 8));
  CHECK(rack_bandwidth(cluster) == Approx(16 * host / 4));
  // A rack's 16 hosts share the bandwidth of 4. Of 248 nodes on other hosts, 128 are in the other
  // rack.
  const LinkCosts::Span exchange = group_network(cluster, 256, 1, Pattern::kExchange).link.span;
  CHECK(exchange.host_bandwidth == Approx(4 * host / (16 * 128 / 248.0)));
  CHECK(group_network(cluster, 256, 1, Pattern::kRing).link.span.host_bandwidth == Approx(host));
  CHECK(load({.hosts = 32, .gpus = 128, .cluster = file}, 0, 16).cluster.nodes == 128);
  CHECK(describe_host(*loaded.profile.machine) ==
        "8 GPUs on one NVSwitch, a card of 400Gbit/s each");
  CHECK(describe_host(read_machine("p5.48xlarge")) ==
        "8 GPUs on one NVSwitch, 4 cards of 100Gbit/s each");
  CHECK_THAT(complaint([&] { load({.hosts = 8, .cluster = file}, 0, 16); }),
             Contains("the cluster has 32 hosts, but `hosts` 8"));
  CHECK_THAT(complaint([&] { load({.machine = "dgx-1", .cluster = file}, 0, 16); }),
             Contains("both define the hosts"));
}

TEST_CASE("the example of a fat tree is 512 GPUs below leaves and spines") {
  const std::string file = HIPRESS_SOURCE_DIR "/examples/cluster_fat_tree.yaml";
  const LoadedMachines loaded = load({.cluster = file}, 0, 16);
  CHECK(loaded.cluster.nodes == 512);
  CHECK_THAT(
      describe_machines(loaded.profile, loaded.cluster, {}),
      Contains("512 nodes on 64 hosts of 8 GPUs on one NVSwitch, a card of 400Gbit/s each") &&
          Contains("racks of 16 hosts 2:1 oversubscribed, of 32 hosts 1.5:1"));
}

TEST_CASE("a fabric that cannot be is refused with file, line and remedy") {
  CHECK_THAT(refusal(kHosts + "cards: 16\n"),
             Contains("c.yaml:5: cards: 16 cards serve GPUs that are not there: a host has 8") &&
                 Contains("Give at most"));
  CHECK_THAT(refusal(kHosts + "cards: 3\n"), Contains(":5") && Contains("give a divisor"));
  CHECK_THAT(refusal("nodes: 4\ncards: 2\n"), Contains(":2") && Contains("a host has 1"));
  CHECK_THAT(refusal("nodes: 4\nrack: {hosts: 2, oversubscription: 0.5}\n"),
             Contains(":2") && Contains("oversubscription") && Contains("1 to 1000"));
  CHECK_THAT(
      refusal("nodes: 8\nrack:\n  - {hosts: 2}\n  - {hosts: 3}\n"),
      Contains(":4") && Contains("no whole number of the racks of 2 hosts") && Contains("give 4"));
  CHECK_THAT(refusal("nodes: 8\nrack: []\n"), Contains(":2") && Contains("1 to 4 levels"));
  CHECK_THAT(refusal("name: x\nmachine: hgx-h10\nhosts: 2\n"),
             Contains("c.yaml:2: machine") && Contains("did you mean 'hgx-h100'"));
  CHECK_THAT(refusal("machine: hgx-h100\nnodes: 16\n"), Contains(":2") && Contains("'nodes'"));
  CHECK_THAT(refusal("machine: cut.yaml\n"), Contains(":1") && Contains("neither a file nor"));
}

}  // namespace
}  // namespace hipress::costs
