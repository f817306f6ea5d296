#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "costs/profile.hpp"
#include "costs/traffic.hpp"
#include "io/file.hpp"

namespace hipress::costs {
namespace {

void check_against(const Curve& curve, double bytes_per_element, const Profile& profile) {
  for (int power = 20; power <= 28; ++power) {
    CAPTURE(power);
    const std::int64_t elements = std::int64_t{1} << power;
    CHECK(curve(elements) >=
          bytes_per_element * static_cast<double>(elements) / profile.memory_bandwidth);
  }
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names = {"sosp21", "v100-100g"};
  for (const std::string gpu : {"a100", "b200", "h100", "h200"}) {
    for (const std::string gbit_s : {"10", "25", "100", "200", "400"}) {
      names.push_back(gpu + "-" + gbit_s + "g");
    }
  }
  return names;
}

/// Number of stages of each staged algorithm.
const std::map<std::string, std::size_t> kStaged = {{"powersgd", 2}, {"acpsgd", 1}, {"rsketch", 1}};

TEST_CASE("the shipped profiles are those that are expected") {
  std::vector<std::string> expected = shipped_profiles();
  std::sort(expected.begin(), expected.end());
  CHECK(profile_names() == expected);
  CHECK(io::data_names("profiler/profiles", ".yaml") ==
        std::vector<std::string>{"sosp21", "v100-100g"});
}

TEST_CASE("a starter profile says that it is an estimate, and is as wide as one") {
  for (const std::string& name : shipped_profiles()) {
    if (name == "sosp21" || name == "v100-100g") continue;
    CAPTURE(name);
    const Profile profile = read_profile(name);
    CHECK(profile.source.starts_with("estimated"));
    CHECK(profile.notes.size() > 4);
    CHECK(profile.device == "cuda");
    REQUIRE(profile.estimate);
    for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
      CAPTURE(row.name);
      CHECK(profile.codecs.contains(std::string(row.name)));
    }
    REQUIRE(profile.spread);
    CHECK(profile.spread->host >= 0.25);
    CHECK(profile.spread->links >= 0.15);
    // nccl-tests reach 92 to 97 % of the line rate, which the name gives before the g.
    const double line = std::stod(name.substr(name.find('-') + 1)) * 1e9 / 8;
    CHECK(profile.link_rate == line);
    CHECK(profile.link.bandwidth > 0.92 * line);
    CHECK(profile.link.bandwidth < 0.97 * line);
  }
  // 94 % of 400 Gbit/s are 47 GB/s. onebit's encode moves 12.125 bytes per element at 80 % of 3350
  // GB/s, and launches three kernels: 5 + 2·2 us.
  const Profile h100 = read_profile("h100-400g");
  CHECK(h100.link.bandwidth == Approx(47e9));
  CHECK(read_profile("h100_400g").fingerprint == h100.fingerprint);
  CHECK(h100.codec("powersgd").decode_stages.per_element_s == 5.9701e-12);
  CHECK(h100.codec("onebit").encode(1 << 20) ==
        Approx(9e-6 + 12.125 * (1 << 20) / (0.8 * 3350e9)).epsilon(1e-4));
}

TEST_CASE("what v100-100g lists are the estimates of the algorithms' rows") {
  const Profile profile = read_profile("v100-100g");
  for (const auto& [name, costs] : profile.codecs) {
    if (!costs.stages.empty() || name == "lossless") continue;  // memory does not limit it
    CAPTURE(name);
    const std::optional<CodecCosts> estimated = estimated_costs(profile, name);
    REQUIRE(estimated);
    const std::int64_t elements = 1 << 26;
    CHECK(costs.encode(elements) == Approx(estimated->encode(elements)).epsilon(1e-4));
    CHECK(costs.decode(elements) == Approx(estimated->decode(elements)).epsilon(1e-4));
    CHECK(costs.decode_add(elements) == Approx(estimated->decode_add(elements)).epsilon(1e-4));
  }
  CHECK_FALSE(estimated_costs(read_profile("sosp21"), "onebit"));
}

TEST_CASE("no shipped profile beats the memory traffic floor of its hardware") {
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = read_profile(name);
    CHECK(profile.name == name);
    // sosp21, the profile of the published cluster, has no entropy coder.
    CHECK(profile.codecs.size() == kernels::algorithms().size() - (name == "sosp21" ? 1 : 0));
    CHECK(profile.kernels_measured_at == profile.memory_bandwidth);
    for (const auto& [algorithm, codec] : profile.codecs) {
      CAPTURE(name, algorithm);
      if (!codec.stages.empty()) continue;
      REQUIRE(least_traffic(algorithm));
      const Traffic traffic = *least_traffic(algorithm);
      check_against(codec.encode, traffic.encode, profile);
      check_against(codec.decode, traffic.decode, profile);
      check_against(codec.decode_add, traffic.decode_add, profile);
    }
    check_against(profile.merge, kMergeTraffic, profile);
  }
}

TEST_CASE("no shipped profile has stages that beat the memory traffic floor of its hardware") {
  // An encode reads gradient and residual, 8 bytes; the decode reads and writes both, 16 bytes.
  const auto check_stage = [](const StageCosts& stage, double bytes, const Profile& profile) {
    CHECK(stage.per_element_s * profile.memory_bandwidth >= bytes * 0.999);
    CHECK(stage.per_element_rank_s > 0);
    CHECK(stage.a_s > 0);
  };
  for (const std::string& name : shipped_profiles()) {
    const Profile profile = read_profile(name);
    for (const auto& [algorithm, stages] : kStaged) {
      CAPTURE(name, algorithm);
      const CodecCosts& codec = profile.codec(algorithm);
      REQUIRE(codec.stages.size() == stages);
      for (const StageCosts& stage : codec.stages) check_stage(stage, 8, profile);
      check_stage(codec.decode_stages, 16, profile);
    }
  }
  // Launches take 5 + 4·2 us. A matrix of 2048 x 2048 with 8 bytes each and a factor of 8192 values
  // with 16 move at 80 % of 3350 GB/s, and take 2 and 4 operations per column at 25 % of 67
  // Tflop/s.
  const Profile h100 = read_profile("h100-400g");
  CHECK(stage_seconds(h100.codec("powersgd").stages[1], 1 << 22, 1 << 13, 4) ==
        Approx(13e-6 + (8. * (1 << 22) + 16. * (1 << 13)) / (0.8 * 3350e9) +
               (2. * (1 << 22) + 4. * (1 << 13)) * 4 / (0.25 * 67e12))
            .epsilon(1e-4));
}

TEST_CASE("sosp21 charges a ring step and an encode what SeCoPa published") {
  const Profile profile = read_profile("sosp21");
  // A ring step: 0.20337 ms + 8.5005e-7 ms · 2^20 elements. The bandwidth has five digits.
  const double bytes = 4.0 * (1 << 20);
  CHECK(profile.link.overhead_s + profile.link.latency_s + bytes / profile.link.bandwidth ==
        Approx((0.20337 + 8.5005e-7 * (1 << 20)) * 1e-3).epsilon(1e-5));
  // An encode: 0.058938 ms + 1.4133e-8 ms · 2^20 elements.
  CHECK(profile.codec("tbq").encode(1 << 20) == Approx((0.058938 + 1.4133e-8 * (1 << 20)) * 1e-3));
  // A gather of 8 nodes: 0.80768 ms + 6.1167e-6 ms · 2^20 elements; fan_in takes bytes.
  CHECK(profile.fan_in.at(8)(4 << 20) == Approx((0.80768 + 6.1167e-6 * (1 << 20)) * 1e-3));
}

/// Published iteration times in seconds of the raw ring on cluster 'aws', by model and GPUs.
std::map<std::string, std::map<int, double>> published_ring_iterations() {
  // Work of one GPU in an iteration, in the units of the throughput.
  const std::map<std::string, double> units = {{"vgg19", 32},  {"resnet50", 32},
                                               {"lstm", 80},   {"ugatit", 2},
                                               {"bert", 4096}, {"transformer", 2048}};
  std::map<std::string, std::map<int, double>> iterations;
  for (const std::string& line :
       io::read_lines(HIPRESS_SOURCE_DIR "/tests/data/sosp21_throughput.csv")) {
    std::vector<std::string> columns;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) columns.push_back(cell);
    if (columns[0] != "aws" || columns[3] != "Ring") continue;
    const int gpus = std::stoi(columns[5]);
    iterations[columns[2]][gpus] = gpus * units.at(columns[2]) / std::stod(columns[6]);
  }
  return iterations;
}

TEST_CASE("v100-100g's bandwidth is the one that its notes derive") {
  // MiB in fp32 of the models on cluster 'aws' (bert is BERT-large).
  const std::map<std::string, double> mebibytes = {{"vgg19", 548.05},   {"bert", 1282.60},
                                                   {"ugatit", 2558.75}, {"lstm", 327.97},
                                                   {"resnet50", 97.49}, {"transformer", 234.08}};
  auto iterations = published_ring_iterations();
  double bytes = 0;
  double seconds = 0;
  for (const auto& [model, size] : mebibytes) {
    // In a ring of N, a node sends 2(N−1)/N times the model: 1 for N = 2 (16 GPUs), 3/2 for N = 4.
    bytes += 0.5 * size * 1024 * 1024;
    seconds += iterations[model][32] - iterations[model][16];
  }
  const Profile profile = read_profile("v100-100g");
  CHECK(profile.link.bandwidth == Approx(bytes / seconds).epsilon(1e-4));
  CHECK(profile.link_rate == 100e9 / 8);
  CHECK(profile.link.bandwidth < profile.link_rate);
}

}  // namespace
}  // namespace hipress::costs
