// Tests that readers accept a changed file, or say what is wrong with it.

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::plans {
namespace {

using Catch::Contains;
using tests::TemporaryFolder;

const std::string kModelYaml =
    "name: m\nsource: |\n  two\n  lines\nbatch: 4\nunit: images\ndtype: float32\nforward: 2ms\n"
    "gradients:\n- {name: a, elements: 64, ready: 1ms}\n- {name: b, elements: 32, ready: 2.5ms, "
    "dtype: float16}\n- {name: c, elements: 100}\n";
const std::string kModelCsv = "name,elements,ready_us\na,64,1000\nb,32,2500\nc,100,0\n";
const std::string kPlan =
    "schema: hipress.plan/1\nmodel: m\ntopology: ps\nnodes: 4\npredicted_iteration: 5ms\n"
    "lower_bound: 4ms\nsearch: timeline\nnetwork: fair\nprofile: p 0123456789abcdef\n"
    "tool: 0.1.0\nraw: ring\ntransfer_order: need\n"
    "bulk: {threshold: 1KiB, wait: 1ms, limit: 4MiB, groups: [[a, c]]}\n"
    "batch: {threshold: 64KiB}\ngradients:\n- {name: a, elements: 64, algorithm: onebit, K: 4}\n"
    "- {name: b, elements: 32, algorithm: none, K: 1}\n"
    "- {name: c, elements: 100, algorithm: onebit, K: 8}\n";
const std::string kProfile =
    "schema: hipress.profile/1\nname: p\nsource: measured\nnotes: [a note]\n"
    "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s, cores: 2, core_turn: 1ms, "
    "shared_host: true}\n"
    "kernels:\n  merge: {pieces: []}\n  codecs:\n    onebit:\n"
    "      encode: {floor: 1us, pieces: [{from: 0, a_s: 1e-4, s_per_element: 1e-9}]}\n"
    "      decode: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}, {from: 64, a_s: 0, "
    "s_per_element: 2e-6}]}\n"
    "      decode_add: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
    "      encode_factor_quotients: 1.2\n"
    "links:\n  {overhead: 10us, bandwidth: 8Gbps, bandwidth_both_ways: 7Gbps, latency: 5us, burst: "
    "1MiB,\n  core_s_per_byte: 1e-9, core_time_per_message: 3us, core_factor_interrupting: 2,\n"
    "  fan_in: {2: {pieces: [{from: 0, a_s: 0, s_per_byte: 1e-9}]}}}\n"
    "overlap: {compute_codec: 1.5, compute_transfer: 2}\n"
    "samples:\n- name: onebit.encode\n  median_relative_residual: 0.1\n"
    "  max_relative_residual: 0.2\n  points: [{x: 5, median: 1us, p10: 1us, p90: 2us, repetitions: "
    "3}]\n...\n";
const std::string kCluster =
    "name: c\nnodes: 4\nnodes_per_host: 2\ncores_per_host: 8\ncore_turn: 1ms\n"
    "link: {bandwidth: 25Gbps, latency: 5us, burst: 0B}\n"
    "host_link: {bandwidth: 300GB/s, overhead: 1us}\n"
    "rack: {hosts: 2, oversubscription: 4, latency: 2us}\ngpus_per_node: 2\n"
    "gpu_link: {bandwidth: 300GB/s}\noverlap: {codec_transfer: 1.1}\n"
    "compute_speed: {1: 0.5, 3: 2}\n";

/// Changes a file as editors, broken disks or attackers might.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : draws_(seed) {}

  std::string apply(std::string text) {
    for (std::size_t times = 1 + below(3); times > 0; --times) once(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(draws_() % end); }

  void once(std::string& text) {
    static const std::vector<std::string> kInsertions = {"99999999999999999999999",
                                                         "-1",
                                                         "1e308",
                                                         "nan",
                                                         "inf",
                                                         "0",
                                                         "\"\\e\\0\"",
                                                         "*x",
                                                         "&x ",
                                                         "[",
                                                         "]",
                                                         "{",
                                                         "}",
                                                         ": ",
                                                         "- ",
                                                         ",",
                                                         "#",
                                                         "\n",
                                                         "\t",
                                                         "'",
                                                         "\"",
                                                         "!!",
                                                         "|\n",
                                                         "\xff",
                                                         "\xe2\x80\xae",
                                                         std::string(1, '\0'),
                                                         "\n---\n",
                                                         "...",
                                                         "1e-300",
                                                         "9223372036854775807",
                                                         std::string(600, '['),
                                                         std::string(300, '9')};
    const std::size_t at = text.empty() ? 0 : below(text.size());
    switch (below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(at, 1 + below(6));
        break;
      case 2:
        text.insert(at, kInsertions[below(kInsertions.size())]);
        break;
      case 3: {  // repeats a line
        const std::size_t begin = text.rfind('\n', at) + 1;
        text.insert(begin, text.substr(begin, text.find('\n', begin) - begin + 1));
        break;
      }
      case 4:
        text.resize(at);
        break;
      default:
        replace_number(text, at);
    }
  }

  /// Replaces the first number after `at`.
  void replace_number(std::string& text, std::size_t at) {
    static const std::vector<std::string> kNumbers = {
        "0",          "-1",      "1e300",
        "-1e300",     "1e-300",  "281474976710657",
        "4294967296", "1048577", "18446744073709551616",
        "0.5",        "1e15",    "2147483648"};
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.e-", begin), text.size());
    text.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
  }

  std::mt19937_64 draws_;
};

/// Reads 300 mutations. Returns the number of refused ones.
int read_mutations(const std::string& name, const std::string& good,
                   const std::function<void(const std::string& file)>& read) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& content) -> std::string {
    try {
      read(folder.file(name, content));
    } catch (const io::InputError& error) {
      return error.what();
    } catch (const std::exception& error) {
      CAPTURE(content);
      FAIL("another exception: " << error.what());
    }
    return "";
  };
  REQUIRE(refusal(good) == "");
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::string content = Mutator(seed).apply(good);
    const std::string message = refusal(content);
    if (message.empty()) continue;
    ++refused;
    CAPTURE(content);
    CHECK_THAT(message, Contains(name));
  }
  return refused;
}

TEST_CASE("mutated models are read, or refused by name", "[slow]") {
  CHECK(read_mutations("m.yaml", kModelYaml, models::read_model) > 100);
  CHECK(read_mutations("m.csv", kModelCsv, models::read_model) > 100);
}

TEST_CASE("mutated plans are read, or refused by name", "[slow]") {
  const TemporaryFolder folder;
  const models::Model model = models::read_model(folder.file("m.yaml", kModelYaml));
  const PlanContext context = {.model = model, .topology = "ps", .nodes = 4};
  const auto read = [&](const std::string& file) {
    nodes_of_plan(file);
    topology_of_plan(file);
    const ResolvedPlan resolved = resolve_plan(file, context);
    plan_fingerprint(model, resolved.plan);
  };
  CHECK(read_mutations("p.yaml", kPlan, read) > 100);
  CHECK(read_mutations("p.txt", "a,64,y,4\nb,32,n,1\nc,100,y,8,tbq(tau=0.25)\n", read) > 100);
}

TEST_CASE("mutated profiles and clusters are read, or refused by name", "[slow]") {
  CHECK(read_mutations("profile.yaml", kProfile, costs::read_profile) > 100);
  const costs::Profile profile;
  CHECK(read_mutations("cluster.yaml", kCluster, [&](const std::string& file) {
          costs::read_cluster(file, profile, 0);
        }) > 100);
}

}  // namespace
}  // namespace hipress::plans
