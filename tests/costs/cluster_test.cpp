#include "costs/cluster.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/error.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;

Profile profile_of(bool shared_host) {
  Profile profile;
  profile.name = "tiny";
  profile.cores = 8;
  profile.shared_host = shared_host;
  profile.link = {1e-5, 1e9, 8e8, 2e-5, 1e-10, 1e-6};
  return profile;
}

/// read_cluster of a file that holds `text`; test programs may run side by side.
Cluster read_text(const std::string& text, std::uint32_t nodes) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("hipress_cluster_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "cluster.yaml") << text;
  try {
    const Cluster cluster =
        read_cluster((folder / "cluster.yaml").string(), profile_of(false), nodes);
    std::filesystem::remove_all(folder);
    return cluster;
  } catch (...) {
    std::filesystem::remove_all(folder);
    throw;
  }
}

TEST_CASE("Nodes are machines of their own, unless the profile was measured on one") {
  CHECK(cluster_from_profile(profile_of(false), 3).host == std::vector<std::uint32_t>{0, 1, 2});
  const Cluster shared = cluster_from_profile(profile_of(true), 3);
  CHECK(shared.host == std::vector<std::uint32_t>{0, 0, 0});
  CHECK(shared.cores_per_host == 8);
  CHECK(shared.compute_speed == std::vector<double>{1, 1, 1});
  CHECK(shared.link == profile_of(true).link);
}

TEST_CASE("A cluster file overrides what it names and keeps the rest of the profile") {
  const Cluster cluster = read_text(
      "name: lab\nnodes: 4\nnodes_per_host: 2\ncores_per_host: 16\n"
      "link: {bandwidth: 10Gbps}\ncompute_speed: {3: 0.5}\n",
      0);
  CHECK(cluster.name == "lab");
  CHECK(cluster.nodes == 4);
  CHECK(cluster.host == std::vector<std::uint32_t>{0, 0, 1, 1});
  CHECK(cluster.cores_per_host == 16);
  CHECK(cluster.link.bandwidth == 1.25e9);            // 10 Gbit/s / 8
  CHECK(cluster.link.bandwidth_both_ways == 1.25e9);  // given alone, it holds both ways
  CHECK(cluster.link.overhead_s == 1e-5);
  CHECK(cluster.compute_speed == std::vector<double>{1, 1, 1, 0.5});
}

TEST_CASE("The number of nodes comes from the file or from the caller, and must agree") {
  CHECK(read_text("nodes: 4\n", 4).nodes == 4);
  CHECK(read_text("name: any\n", 5).nodes == 5);
  CHECK_THROWS_WITH(read_text("nodes: 4\n", 8), Contains(":1") && Contains("4") && Contains("8"));
  CHECK_THROWS_WITH(read_text("name: any\n", 0), Contains("nodes"));
}

TEST_CASE("A cluster file's faults are named with file and line") {
  CHECK_THROWS_WITH(read_text("nodes: 0\n", 0), Contains("cluster.yaml:1"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nnodez: 3\n", 0), Contains(":2") && Contains("nodez"));
  CHECK_THROWS_WITH(read_text("nodes: 2\noverlap: {compute_codec: 9}\n", 0),
                    Contains(":2") && Contains("1 (no slower together) to 8"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nlink: {bandwidth: 10}\n", 0),
                    Contains(":2") && Contains("Gbps"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nlink: {speed: 10Gbps}\n", 0),
                    Contains(":2") && Contains("speed"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ncompute_speed: {2: 0.5}\n", 0),
                    Contains(":2") && Contains("node"));
  CHECK_THROWS_WITH(read_text("nodes: 2\ncompute_speed: {1: 0}\n", 0),
                    Contains(":2") && Contains("positive"));
  CHECK_THROWS_WITH(read_text("nodes: 2\nnodes_per_host: 0\n", 0), Contains(":2"));
}

}  // namespace
}  // namespace hipress::costs
