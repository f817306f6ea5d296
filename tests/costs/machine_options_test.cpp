#include "costs/machine_options.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "costs/levels.hpp"
#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::complaint;
using tests::TemporaryFolder;

const char* const kClusterFile = R"(nodes: 8
gpus_per_node: 4
gpu_link: {bandwidth: 250GB/s, overhead: 5us}
link: {bandwidth: 25Gbps, overhead: 20us, latency: 20us}
)";

std::string refusal(const MachineOptions& options) {
  return complaint([&] { load(options, 0, 16); });
}

TEST_CASE("what lies in the current folder is no default profile") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("sosp21"));
  folder.file("v100-100g", "no profile");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  const Profile usual = load({}, 0, 16).profile;
  const Profile named = load({.profile = "v100-100g"}, 0, 16).profile;
  const std::string as_path = refusal({.profile = "./v100-100g"});
  const std::string as_folder = refusal({.profile = "./sosp21"});
  std::filesystem::current_path(before);
  CHECK(usual.name == "sosp21");
  CHECK(named.name == "v100-100g");
  CHECK_THAT(as_path, Contains("./v100-100g"));
  CHECK_THAT(as_folder, Contains("./sosp21: is a folder"));
}

TEST_CASE("short forms say what a cluster file says") {
  const TemporaryFolder folder;
  MachineOptions file;
  file.profile = "v100-100g";
  file.cluster = folder.file("c25.yaml", kClusterFile);
  const LoadedMachines from_file = load(file, 0, 16);
  const MachineOptions words = {.profile = "v100-100g",
                                .bandwidth = "25Gbps",
                                .latency = "20us",
                                .overhead = "20us",
                                .gpus_per_node = 4};
  CHECK(words.names_cluster());
  const LoadedMachines machines = load(words, 8, 16);
  CHECK(machines.profile == from_file.profile);
  CHECK(machines.cluster.link == from_file.cluster.link);
  CHECK(machines.cluster.gpus_per_node == 4);
  CHECK(machines.cluster.gpu_link == from_file.cluster.gpu_link);  // kUsualGpuLink
  CHECK(machines.cluster.nodes == 8);
  CHECK(machines.warnings.empty());
  REQUIRE(from_file.warnings.size() == 1);
  CHECK_THAT(from_file.warnings[0],
             Contains("c25.yaml:4: link replaces what profile v100-100g has: bandwidth 25 Gbit/s "
                      "instead of 76.5 Gbit/s, overhead 20us instead of 97.66us, latency 20us"));
  REQUIRE(machines.diagnostics.size() == 1);
  CHECK(machines.diagnostics[0] ==
        "GPUs of a node are assumed to be joined at 250GB/s, as by NVLink of A100s; "
        "`gpu_bandwidth` changes that");
}

TEST_CASE("short forms go before a cluster file") {
  const TemporaryFolder folder;
  MachineOptions options = {.bandwidth = "10Gbps", .gpu_bandwidth = "300GB/s"};
  options.cluster = folder.file("c25.yaml", kClusterFile);
  const Cluster cluster = load(options, 0, 16).cluster;
  CHECK(cluster.link.bandwidth == 1.25e9);
  CHECK(cluster.link.bandwidth_both_ways == 1.25e9);
  CHECK(cluster.link.latency_s == 20e-6);
  CHECK(cluster.gpus_per_node == 4);
  CHECK(cluster.gpu_link == GpuLinkCosts{5e-6, 300e9});
}

TEST_CASE("without options the default profile speaks, for as many nodes as are asked for") {
  CHECK_FALSE(MachineOptions{}.names_cluster());
  const LoadedMachines machines = load({}, 0, 16);
  CHECK(machines.profile.name == "sosp21");
  CHECK(machines.cluster.nodes == 16);
  CHECK(machines.cluster.link == machines.profile.link);
  CHECK(machines.diagnostics.empty());
  CHECK(machines.warnings.empty());
}

TEST_CASE("options that contradict each other or are no quantities are refused by name") {
  CHECK_THAT(refusal({.bandwidth = "25"}), Contains("`bandwidth` must be"));
  CHECK_THAT(refusal({.bandwidth = "1e9TB/s"}), Contains("`bandwidth` must be from"));
  CHECK_THAT(refusal({.latency = "20"}), Contains("`latency` must be a duration with unit"));
  CHECK(refusal({.overhead = "1e7s"}) == "`overhead` must be 0s to 1e+06s, got '1e7s'");
  CHECK_THAT(refusal({.gpus_per_node = 2, .gpu_bandwidth = "fast"}),
             Contains("`gpu_bandwidth` must be"));
  CHECK_THAT(refusal({.scale_kernels = "double"}), Contains("`scale_kernels` must be"));
  const TemporaryFolder folder;
  const std::string flat =
      folder.file("flat.yaml", "nodes: 8\nnodes_per_host: 4\nhost_link: {bandwidth: 300GB/s}\n");
  CHECK_THAT(refusal({.cluster = flat, .gpus_per_node = 4}),
             Contains("`gpus_per_node` gives nodes several GPUs") && Contains(flat));
}

TEST_CASE("option --gpu-bandwidth without several GPUs is warned of") {
  CHECK(load({.gpu_bandwidth = "300GB/s"}, 4, 16).warnings ==
        std::vector<std::string>{
            "`gpu_bandwidth` has no effect: nodes have one GPU (`gpus_per_node`)"});
}

TEST_CASE("links of one's own between nodes that share a machine's cores are warned of") {
  Profile profile;
  profile.name = "measured";
  profile.shared_host = true;
  profile.cores = 2;
  const LoadedMachines shared = load({.bandwidth = "10Gbps"}, profile, 4, 16);
  REQUIRE(shared.warnings.size() == 1);
  CHECK_THAT(shared.warnings[0],
             Contains("whose 2 cores these 4 nodes share") && Contains("nodes_per_host: 1"));
  CHECK(load({}, profile, 4, 16).warnings.empty());
  CHECK(load({.bandwidth = "10Gbps"}, profile, 1, 16).warnings.empty());
  profile.shared_host = false;
  CHECK(load({.bandwidth = "10Gbps"}, profile, 4, 16).warnings.empty());
}

TEST_CASE("a cluster's link without the share of its rate that the profile allows is warned of") {
  const tests::TemporaryFolder folder;
  Profile profile;
  profile.name = "tiny";
  profile.link = {
      .bandwidth = 1e9, .bandwidth_both_ways = 1e9, .latency_s = 2e-5};  // 1 GB/s is 80 % of 10
                                                                         // Gbit/s
  const auto said = [&](const std::string& link) {
    return load({.cluster = folder.file("c.yaml", "nodes: 4\n" + link)}, profile, 0, 16).warnings;
  };
  CHECK(said("link: {bandwidth: 10Gbps}").empty());  // the profile has no rate of its link
  profile.link_rate = 10e9 / 8;
  const std::vector<std::string> both = said("link: {bandwidth: 10Gbps, latency: 5us}");
  REQUIRE(both.size() == 1);
  CHECK_THAT(both[0], Contains("c.yaml:2: link replaces what profile tiny has: bandwidth 10 Gbit/s "
                               "instead of 8 Gbit/s, latency 5us instead of 20us") &&
                          Contains("give it as rate") && Contains("80 %"));
  const std::vector<std::string> latency = said("link: {latency: 5us}");
  REQUIRE(latency.size() == 1);
  CHECK_THAT(latency[0], !Contains("give it as rate"));
  CHECK(said("link: {rate: 10Gbps}").empty());
  CHECK(said("link: {bandwidth: 8Gbps}").empty());
}

TEST_CASE("kernels are scaled from the bandwidth that they were measured at") {
  const Profile before = read_profile("v100-100g");
  const LoadedMachines machines = load({.profile = "v100-100g", .scale_kernels = "1.8TB/s"}, 4, 16);
  const Profile& after = machines.profile;
  // From 900 GB/s to twice that: the time above that of the launch is halved.
  const auto half = [](const Curve& slow, const Curve& fast) {
    for (const std::int64_t x : {1, 1 << 20, 1 << 26}) {
      CHECK(fast(x) - fast(0) == Approx((slow(x) - slow(0)) / 2));
      CHECK(fast(0) == slow(0));
    }
  };
  half(before.merge, after.merge);
  for (const auto& [name, codec] : before.codecs) {
    CAPTURE(name);
    half(codec.encode, after.codecs.at(name).encode);
    half(codec.decode, after.codecs.at(name).decode);
    half(codec.decode_add, after.codecs.at(name).decode_add);
  }
  CHECK(after.link == before.link);
  CHECK(after.name == "v100-100g with kernels scaled to 1.8TB/s");
  CHECK(machines.diagnostics ==
        std::vector<std::string>{"kernels of profile v100-100g are scaled from 900GB/s to 1.8TB/s "
                                 "of memory bandwidth; costs of launches stay"});
}

TEST_CASE("a curve of several pieces is scaled as a whole, and never negative") {
  Profile profile;
  profile.memory_bandwidth = 1e9;
  // The second piece meets the first at x = 1000.
  profile.merge = {{{0, 1e-6, 1e-9}, {1000, 0, 2e-9}}, 0};
  scale_kernels(2e9, profile);
  CHECK(profile.merge.at(999.999) == Approx(1.5e-6));
  CHECK(profile.merge.at(1000) == Approx(1.5e-6));
  CHECK(profile.merge.at(3000) == Approx(1e-6 + (6e-6 - 1e-6) / 2));
  CHECK(profile.kernels_measured_at == 2e9);
  // The second piece is below the cost of the launch: scaled, its time would be negative.
  profile.merge = {{{0, 1e-6, 0}, {1000, 0, 0}}, 0};
  scale_kernels(2e7, profile);
  CHECK(profile.merge.at(1000) == 0);
}

TEST_CASE("what is not measured is charged what is said to cost as much") {
  MachineOptions options = {.profile = "sosp21",
                            .assumed_costs = {"mine.pse=onebit", "x.pse(b=2)=tbq"}};
  const LoadedMachines machines = load(options, 4, 0);
  const auto& codecs = machines.profile.codecs;
  CHECK(codecs.at("mine.pse") == machines.profile.codec("onebit"));
  CHECK(codecs.at("x.pse(b=2)") == machines.profile.codec("tbq"));
  CHECK(machines.diagnostics.size() == 2);
  options.assumed_costs = {"onebit=tbq"};
  const LoadedMachines measured = load(options, 4, 0);
  REQUIRE(measured.warnings.size() == 1);
  CHECK_THAT(measured.warnings[0], Contains("has no effect") && Contains("onebit"));
  CHECK(measured.profile.codec("onebit") == machines.profile.codec("onebit"));
  for (const char* wrong : {"mine.pse", "=onebit", "mine.pse=", "mine.pse=nothing"}) {
    CAPTURE(wrong);
    options.assumed_costs = {wrong};
    CHECK_THROWS_AS(load(options, 4, 0), io::InputError);
  }
}

TEST_CASE("stages are scaled less their launches") {
  Profile profile;
  profile.memory_bandwidth = 1e9;
  profile.codecs["in_stages"].stages = {{1e-5, 4e-9, 8e-10, 6e-9, 2e-9}};
  profile.codecs["in_stages"].decode_stages = {2e-5, 8e-9, 0, 0, 0};
  scale_kernels(2e9, profile);
  CHECK(profile.codecs["in_stages"].stages[0] == StageCosts{1e-5, 2e-9, 4e-10, 3e-9, 1e-9});
  CHECK(profile.codecs["in_stages"].decode_stages == StageCosts{2e-5, 4e-9, 0, 0, 0});
}

TEST_CASE("an edit of the memory bandwidth alone is warned of, and scaled to when asked") {
  const TemporaryFolder folder;
  std::string text = io::read_file(io::data_file("profiler/profiles/v100-100g.yaml"));
  const std::string line = "  memory_bandwidth: 900GB/s";
  text.replace(text.find(line), line.size(), "  memory_bandwidth: 1.8TB/s");
  const std::string path = folder.file("mine.yaml", text);
  const LoadedMachines edited = load({.profile = path}, 4, 16);
  CHECK(edited.warnings ==
        std::vector<std::string>{
            "profile v100-100g: hardware.memory_bandwidth 1.8TB/s has no effect, since the "
            "costs of kernels are for 900GB/s (kernels.measured_at): `scale_kernels` scales them "
            "to it"});
  CHECK(edited.profile.merge == read_profile("v100-100g").merge);
  const LoadedMachines scaled =
      load({.profile = path, .scale_kernels = std::string(kAsHardware)}, 4, 16);
  CHECK(scaled.warnings.empty());
  CHECK(scaled.profile.merge ==
        load({.profile = "v100-100g", .scale_kernels = "1.8TB/s"}, 4, 16).profile.merge);
  CHECK_THAT(load({.profile = "v100-100g", .scale_kernels = "900GB/s"}, 4, 16).warnings.at(0),
             Contains("`scale_kernels` has no effect"));
}

TEST_CASE("a machine makes nodes of GPUs, hosts that share their cards, and kernels") {
  const LoadedMachines four = load({.machine = "p5.48xlarge", .hosts = 4}, 0, 16);
  const Cluster& cluster = four.cluster;
  CHECK(cluster.nodes == 32);
  CHECK(cluster.host[7] == 0);
  CHECK(cluster.host[8] == 1);
  // 32 cards of 100 Gbit/s reach 90 %; rings reach 84.4 % of 450 GB/s.
  CHECK(cluster.link.bandwidth == Approx(32 * 12.5e9 * 0.9));
  CHECK(cluster.link.overhead_s == 5e-6);
  REQUIRE(cluster.host_link);
  CHECK(cluster.host_link->bandwidth == Approx(0.844 * 450e9));
  CHECK(four.profile.name == "p5.48xlarge");
  CHECK(four.profile.merge == read_profile("h100-400g").merge);
  // An A100 of 40 GB has 1555 GB/s; its starter profile is for 2039 GB/s.
  const LoadedMachines a100 = load({.machine = "p4d.24xlarge"}, 0, 16);
  CHECK(a100.cluster.nodes == 8);
  CHECK(a100.profile.memory_bandwidth == 1555e9);
  CHECK(load({.machine = "hgx-h100", .hosts = 2, .gpus = 4}, 0, 16).cluster.host ==
        std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK(load({.machine = "hgx-h100"}, 24, 16).cluster.host[23] == 2);
  const LoadedMachines slow =
      load({.machine = "hgx-h100", .hosts = 2, .bandwidth = "1Gbps"}, 0, 16);
  CHECK(ring_costs(slow.cluster).span.host_bandwidth == 125e6);
}

TEST_CASE("links of a machine's cluster say how many hosts a collective spans") {
  const Cluster cluster = load({.machine = "hgx-h100", .hosts = 4}, 0, 16).cluster;
  CHECK(ring_costs(cluster).span.hosts == 4);
  CHECK(group_network(cluster, 8, 1, Pattern::kRing).link.span.hosts == 1);
  CHECK(group_network(cluster, 16, 1, Pattern::kRing).link.span.hosts == 2);
  CHECK(group_network(cluster, 4, 8, Pattern::kRing).link.span.hosts == 4);
  const std::optional<Cluster> two = in_two_levels(cluster);
  REQUIRE(two);
  CHECK(ring_costs(*two).span == LinkCosts::Span{4, 8, cluster.link.bandwidth});
  // Without a machine, links have no span.
  CHECK(ring_costs(load({}, 4, 16).cluster).span == LinkCosts::Span{});
}

TEST_CASE("machines that contradict the rest of a request are refused") {
  const TemporaryFolder folder;
  CHECK_THAT(refusal({.machine = "p5", .hosts = 2}), Contains("machine 'p5': neither a file nor"));
  CHECK_THAT(refusal({.hosts = 2}), Contains("`hosts` needs a `machine`"));
  CHECK_THAT(refusal({.gpus = 2}), Contains("`gpus` needs a `machine`"));
  CHECK_THAT(refusal({.machine = "hgx-h100", .hosts = 4, .gpus = 30}),
             Contains("`gpus` 30 on 4 hosts: give a multiple of `hosts`, at most 8 on each"));
  CHECK_THAT(refusal({.machine = "hgx-h100", .hosts = 1, .gpus = 16}), Contains("at most 8"));
  CHECK_THAT(refusal({.machine = "hgx-h100", .gpus_per_node = 8}),
             Contains("`gpus_per_node`: with a `machine` every GPU is a node"));
  CHECK_THAT(refusal({.machine = "hgx-h100", .cluster = folder.file("c.yaml", kClusterFile)}),
             Contains("`machine` and `cluster` both define the hosts"));
  CHECK_THAT(complaint([] { load({.machine = "hgx-h100", .gpus = 8}, 16, 16); }),
             Contains("`gpus` 8 and 16 nodes contradict each other"));
}

}  // namespace
}  // namespace hipress::costs
