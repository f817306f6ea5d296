// Tests that every number in a file has a range, and is refused outside it with file and line.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using Catch::StartsWith;
using tests::complaint;
using tests::TemporaryFolder;

const std::string kProfile =
    "schema: hipress.profile/1\nname: p\nsource: measured\n"
    "hardware: {name: t, device: cpu, memory_bandwidth: 10GB/s, cores: 2, core_turn: 1ms}\n"
    "kernels:\n  merge: {floor: 1us, pieces: [{from: 0, a_s: 1e-4, s_per_element: 1e-9}]}\n"
    "  codecs: {onebit: {encode: {pieces: []}, decode: {pieces: []}, decode_add: {pieces: []}, "
    "encode_factor_quotients: 1.5}}\n"
    "links: {overhead: 10us, bandwidth: 8Gbps, bandwidth_both_ways: 7Gbps, latency: 5us, burst: "
    "1MiB, core_s_per_byte: 1e-9, core_time_per_message: 3us, core_factor_interrupting: 2}\n"
    "overlap: {compute_codec: 1.5}\n"
    "samples: [{name: s, median_relative_residual: 0.1, max_relative_residual: 0.2, points: [{x: "
    "5, median: 4us, p10: 2us, p90: 6us, mean: 7us, repetitions: 3}]}]\n...\n";

const std::string kCluster =
    "nodes: 4\nnodes_per_host: 2\ncores_per_host: 8\ncore_turn: 1ms\n"
    "link: {bandwidth: 25Gbps, latency: 5us, overhead: 3us}\n"
    "host_link: {bandwidth: 300GB/s, latency: 7us}\n"
    "rack: {hosts: 2, oversubscription: 4, latency: 2us}\n"
    "gpus_per_node: 2\ngpu_link: {bandwidth: 200GB/s, overhead: 6us}\n"
    "overlap: {codec_transfer: 1.1}\ncompute_speed: {1: 0.5}\n";

const std::string kModel =
    "name: m\nbatch: 3\nforward: 2ms\ngradients:\n- {name: a, elements: 64, ready: 1ms}\n";

/// Replacements for a value of a good file, each of which is refused with that line.
struct Row {
  int line;
  const char* good;
  std::vector<const char*> bad;
};

template <class Read>
void check_rows(const std::string& file, const std::string& good, const std::vector<Row>& rows,
                const Read& read) {
  const TemporaryFolder folder;
  const std::string path = folder.path(file);
  const auto refusal = [&](const std::string& content) {
    folder.file(file, content);
    return complaint([&] { read(path); });
  };
  REQUIRE(refusal(good) == "no InputError");
  for (const Row& row : rows) {
    const std::size_t at = good.find(row.good);
    REQUIRE(at != std::string::npos);
    REQUIRE(good.find(row.good, at + 1) == std::string::npos);
    const std::string key(row.good, std::string_view(row.good).find(':') + 2);
    for (const char* bad : row.bad) {
      CAPTURE(row.good, bad);
      const std::string content =
          good.substr(0, at) + key + bad + good.substr(at + std::string_view(row.good).size());
      const std::string message = refusal(content);
      CHECK_THAT(message, StartsWith(path + ":" + std::to_string(row.line) + ": "));
      CHECK_THAT(message, Contains(" must ") || Contains("more than") || Contains("faster") ||
                              Contains("negative time"));
    }
  }
}

TEST_CASE("a profile's numbers are refused outside of their ranges with file and line") {
  const std::vector<const char*> times = {"-1us", "1e7s", "1e300s", "nans", "5", "1e400s"};
  const std::vector<const char*> rates = {"0B/s", "-1GB/s", "1e300GB/s", "1e-9B/s", "5"};
  check_rows("p.yaml", kProfile,
             {{4, "memory_bandwidth: 10GB/s", rates},
              {4, "cores: 2", {"-1", "1048577", "1e3", "99999999999999999999"}},
              {4, "core_turn: 1ms", {"-1ms", "2s", "1e300s"}},
              {6, "floor: 1us", times},
              {6, "from: 0", {"-1", "1e300", "nan"}},
              {6, "a_s: 1e-4", {"-1", "1e300", "-1e300", "inf", "1e7"}},
              {6, "s_per_element: 1e-9", {"-1e-9", "1e300", "2", "nan"}},
              {7, "encode_factor_quotients: 1.5", {"0.5", "-1", "1e300", "inf"}},
              {8, "overhead: 10us", times},
              {8, "bandwidth: 8Gbps", rates},
              {8, "bandwidth_both_ways: 7Gbps", {"0Gbps", "9Gbps", "-1Gbps"}},
              {8, "latency: 5us", times},
              {8, "burst: 1MiB", {"-1B", "8192TiB", "0.5B", "1e300MiB", "1000TiB"}},
              {8, "core_s_per_byte: 1e-9", {"-1", "1e300", "2"}},
              {8, "core_time_per_message: 3us", times},
              {8, "core_factor_interrupting: 2", {"0", "1e300", "-2"}},
              {9, "compute_codec: 1.5", {"0.5", "9", "1e300"}},
              {10, "median_relative_residual: 0.1", {"-1", "1e300"}},
              {10, "max_relative_residual: 0.2", {"-1", "1e300"}},
              {10, "x: 5", {"-1", "9223372036854775807", "1e3"}},
              {10, "median: 4us", times},
              {10, "p10: 2us", times},
              {10, "p90: 6us", times},
              {10, "mean: 7us", times},
              {10, "repetitions: 3", {"0", "-3", "3000000000"}}},
             [](const std::string& path) { read_profile(path); });
}

TEST_CASE("a cluster's numbers are refused outside of their ranges with file and line") {
  const std::vector<const char*> times = {"-1us", "1e7s", "1e300s"};
  const std::vector<const char*> rates = {"0B/s", "-1GB/s", "1e300GB/s", "1e-9B/s"};
  const Profile profile;
  check_rows("c.yaml", kCluster,
             {{1, "nodes: 4", {"0", "-1", "1048577", "99999999999999999999"}},
              {2, "nodes_per_host: 2", {"0", "-1", "1048577"}},
              {3, "cores_per_host: 8", {"-1", "1048577", "4294967296"}},
              {4, "core_turn: 1ms", {"-1ms", "2s"}},
              {5, "bandwidth: 25Gbps", rates},
              {5, "latency: 5us", times},
              {5, "overhead: 3us", times},
              {6, "bandwidth: 300GB/s", rates},
              {6, "latency: 7us", times},
              {7, "hosts: 2", {"0", "-1", "1048577"}},
              {7, "oversubscription: 4", {"0", "-1", "1e300", "1001"}},
              {7, "latency: 2us", times},
              {8, "gpus_per_node: 2", {"0", "-1", "4097"}},
              {9, "bandwidth: 200GB/s", rates},
              {9, "overhead: 6us", times},
              {10, "codec_transfer: 1.1", {"0", "-1", "1e300"}},
              {11, "1: 0.5", {"0", "-1", "1e300", "1e-300", "nan"}}},
             [&](const std::string& path) { read_cluster(path, profile, 0); });
}

TEST_CASE("a model's numbers are refused outside of their ranges with file and line") {
  check_rows("m.yaml", kModel,
             {{2, "batch: 3", {"-1", "2147483648", "1e3"}},
              {3, "forward: 2ms", {"-1ms", "1e7s", "1e300s", "nan"}},
              {5, "elements: 64", {"0", "-1", "281474976710657", "1e3", "99999999999999999999"}},
              {5, "ready: 1ms", {"-1ms", "1e7s", "1e300s"}}},
             [](const std::string& path) { models::read_model(path); });
}

TEST_CASE("a burst that takes longer than a task may is refused at its line, in both files") {
  const TemporaryFolder folder;
  // At 1 B/s, 2^50 B take 1e15 s.
  const std::string burst = "nodes: 2\nlink:\n  bandwidth: 1B/s\n  burst: 1024TiB\n";
  CHECK_THAT(complaint([&] { read_cluster(folder.file("c.yaml", burst), Profile(), 0); }),
             Contains("c.yaml:4: link.burst: a burst of"));
}

TEST_CASE("a burst of a link that nodes share is refused at the line that says so") {
  const TemporaryFolder folder;
  Profile profile;
  profile.link = {.bandwidth = 1e9, .bandwidth_both_ways = 1e9, .burst_bytes = 1 << 20};
  const auto about = [&](const std::string& text) {
    return complaint([&] { read_cluster(folder.file("c.yaml", text), profile, 4); });
  };
  CHECK_THAT(about("name: c\nhost_link: {bandwidth: 1GB/s}\n"),
             Contains("c.yaml:2: host_link: ") && Contains("burst: 0B"));
  CHECK_THAT(about("rack: {hosts: 2}\n"), Contains("c.yaml:1: rack: ") && Contains("burst: 0B"));
  CHECK(about("link: {burst: 0B}\nrack: {hosts: 2}\n") == "no InputError");
}

}  // namespace
}  // namespace hipress::costs
