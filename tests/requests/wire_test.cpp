#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "costs/collectives.hpp"
#include "costs/profile.hpp"
#include "io/document.hpp"
#include "runtime/hipress.h"
#include "tests/io/temporary_folder.hpp"

// Tests that no predicted time is below that of its bytes on the slowest link of their path, even
// if the profile was measured on another link.

namespace {

using namespace hipress;

io::Document simulated(const io::Document& request) {
  char* text = nullptr;
  const hipress_status status = hipress_call(request.print().c_str(), &text);
  if (status != HIPRESS_OK) FAIL(request.print() + ": " + hipress_last_error());
  const io::Document made = io::Document::parse(text, "result");
  hipress_free_result(text);
  return made;
}

double number(const io::Document& document, std::string_view key) {
  return *document.find(key)->number();
}

/// Curve with `factor` times the ideal time of a collective among n nodes on this link. Curve and
/// ideal time are linear in the bytes.
costs::Curve times_ideal(const costs::CollectiveRow& row, double factor, int n,
                         const costs::LinkCosts& link) {
  const double at_0_s = row.ideal_s(n, 0, link);
  const double per_byte_s = (row.ideal_s(n, 1'000'000'000, link) - at_0_s) / 1e9;
  return {.pieces = {{.a_s = factor * at_0_s, .b_s = factor * per_byte_s}}, .floor_s = 0};
}

/// A job with a random profile, plan and link. Its measured collectives take 0.3 to 3 times the
/// ideal time, as on a shared machine.
class RandomJob {
 public:
  RandomJob(std::uint64_t seed, const tests::TemporaryFolder& folder)
      : draws_(seed), folder_(folder) {
    make_profile();
    make_plan();
    make_link();
  }

  const io::Document& request() const { return request_; }
  /// Rate of the slowest link that all of a node's bytes pass, in bytes per second.
  double bandwidth() const { return bandwidth_; }
  std::int64_t bytes_stored() const { return bytes_stored_; }
  /// True if every node sends at least 2(N−1)/N of the gradients' bytes as stored.
  bool is_raw_mean() const { return raw_mean_; }
  double nodes() const { return nodes_; }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(draws_() % bound); }
  bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
  double between(double least, double most) {
    return least + (most - least) * static_cast<double>(below(1 << 20)) / (1 << 20);
  }
  template <class T, std::size_t kCount>
  T pick(const std::array<T, kCount>& values) {
    return values[below(kCount)];
  }

  void make_profile() {
    profile_ = costs::read_profile("v100-100g");
    profile_.name = "random";
    profile_.source = "measured by nobody";
    profile_.link_rate = 0;
    costs::LinkCosts& link = profile_.link;
    link = {.overhead_s = pick(std::array{0.0, 5e-6, 50e-6}),
            .bandwidth = pick(std::array{12.5e6, 1.25e9, 5e9, 50e9}),
            .latency_s = pick(std::array{0.0, 5e-6, 1e-3}),
            .burst_bytes = pick(std::array<std::int64_t, 2>{0, 100'000})};
    link.bandwidth_both_ways = link.bandwidth * pick(std::array{1.0, 1.0, 0.7});
    if (chance(2)) {
      profile_.shared_host = true;
      profile_.cores = 1 + static_cast<int>(below(8));
      link.core_s_per_byte = pick(std::array{0.0, 0.1, 1.0, 2.0}) / link.bandwidth;
    }
    for (const auto& [row, curves] : {std::pair(&costs::kAllReduce, &profile_.all_reduce),
                                      std::pair(&costs::kAllGather, &profile_.all_gather),
                                      std::pair(&costs::kReduceScatter, &profile_.reduce_scatter),
                                      std::pair(&costs::kAllToAll, &profile_.all_to_all)}) {
      if (chance(3)) continue;
      for (const int n : {2, 4}) (*curves)[n] = times_ideal(*row, between(0.3, 3), n, link);
    }
    if (chance(2)) {
      profile_.spread = costs::Spread{.host = between(0, 0.3),
                                      .links = between(0, 0.3),
                                      .compute = 0.05,
                                      .model = between(0, 0.2),
                                      .iterations = 0.1};
    }
  }

  void make_plan() {
    nodes_ = 2 + below(7);
    const bool sharded = chance(3), local = !sharded && chance(4);
    const std::string schedule =
        sharded ? pick(std::array<std::string, 4>{"fsdp", "fsdp(prefetch=pre, in_flight=2)",
                                                  "fsdp(prefetch=none)", "fsdp(reshard=false)"})
        : local ? pick(std::array<std::string, 2>{"local(steps=3)", "local(steps=4, overlap=1)"})
                : std::string("ddp");
    const std::string topology =
        sharded ? "ring" : pick(std::array<std::string, 4>{"ps", "ring", "allreduce", "allgather"});
    const bool halves = chance(2);
    std::vector<std::string> algorithms = {"none", "fp16"};
    if (topology == "allgather" || topology == "ps" || topology == "ring") {
      algorithms.emplace_back("onebit");
    }
    const std::string algorithm = sharded || halves ? "none" : algorithms[below(algorithms.size())];
    // In a library's rings all bytes pass the slowest link. Messages between pairs may avoid it.
    in_rings_ = sharded || (topology == "allreduce" && algorithm != "onebit");
    raw_mean_ = !sharded && !local && algorithm == "none" && topology != "allgather";
    std::string model = fmt::format("name: random\ndtype: {}\ngradients:\n",
                                    halves ? pick(std::array{"float16", "bfloat16"}) : "float32");
    std::string plan = fmt::format(
        "schema: hipress.plan/1\nmodel: random\ntopology: {}\nnodes: {}\nschedule: "
        "{}\ngradients:\n",
        topology, nodes_, schedule);
    for (std::uint32_t g = 0; g < 4; ++g) {
      const std::int64_t elements = pick(std::array{1000, 250'000, 3'000'000});
      bytes_stored_ += elements * (halves ? 2 : 4);
      model += fmt::format("- {{name: blocks.{}.weight, elements: {}, ready: {}us}}\n", g, elements,
                           10 * (g + 1));
      plan += fmt::format("- {{name: blocks.{}.weight, elements: {}, algorithm: {}, K: {}}}\n", g,
                          elements, algorithm, 1 + below(3));
    }
    request_ = {{"request", "simulate"},
                {"input", folder_.file("model.yaml", model)},
                {"plan", folder_.file("plan.yaml", plan)}};
  }

  void make_link() {
    const std::uint32_t kind = below(4);
    const std::string rate =
        pick(std::array<std::string, 4>{"100Mbps", "1Gbps", "25Gbps", "400Gbps"});
    const double of_rate =
        std::stod(rate) * (rate.find("Mbps") != std::string::npos ? 1e6 : 1e9) / 8;
    bandwidth_ = of_rate;
    if (kind == 0) {
      profile_.link.burst_bytes = 0;
      // Measured collectives, and predictions for the profile's own link, may be faster than ideal.
      double least = 1;
      for (const auto& [row, curves] :
           {std::pair(&costs::kAllReduce, &profile_.all_reduce),
            std::pair(&costs::kAllGather, &profile_.all_gather),
            std::pair(&costs::kReduceScatter, &profile_.reduce_scatter)}) {
        for (const auto& [n, curve] : *curves) {
          least = std::min(least, curve(1'000'000) / row->ideal_s(n, 1'000'000, profile_.link));
        }
      }
      bandwidth_ = profile_.link.bandwidth / (in_rings_ ? least : 1);
      own_ = true;
    } else if (kind == 1) {
      request_["bandwidth"] = rate;
    } else {
      std::string cluster = fmt::format("nodes: {}\n", nodes_);
      if (chance(2)) {
        profile_.link_rate = 2 * profile_.link.bandwidth;
        cluster += fmt::format("link: {{rate: {}}}\n", rate);
        bandwidth_ /= 2;
      } else {
        cluster += fmt::format("link: {{bandwidth: {}}}\n", rate);
      }
      if (kind == 2 && in_rings_ && nodes_ % 2 == 0 && nodes_ > 2) {
        cluster += "nodes_per_host: 2\nhost_link: {bandwidth: 300GB/s}\n";
      } else if (chance(2)) {
        cluster += "nodes_per_host: 1\n";
      }
      request_["cluster"] = folder_.file("cluster.yaml", cluster);
    }
    if (!own_ && chance(3)) {
      request_["jitter"] = "lognormal:0.5";
      request_["replicas"] = 3;
    }
    costs::write_profile(folder_.path("profile.yaml"), profile_);
    request_["profile"] = folder_.path("profile.yaml");
  }

  std::mt19937_64 draws_;
  const tests::TemporaryFolder& folder_;
  costs::Profile profile_;
  io::Document request_;
  std::uint32_t nodes_ = 0;
  std::int64_t bytes_stored_ = 0;
  double bandwidth_ = 0;
  bool in_rings_ = false, raw_mean_ = false, own_ = false;

 public:
  bool on_own_link() const { return own_ || bandwidth_ == profile_.link.bandwidth; }
};

constexpr double kRounding = 1 - 1e-6;

}  // namespace

TEST_CASE("no prediction and no end of an interval is faster than its bytes over the link") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const tests::TemporaryFolder folder;
    const RandomJob job(seed, folder);
    CAPTURE(seed, job.request().print());
    const io::Document found = simulated(job.request());
    double bytes = 0;
    for (const io::Document& of_node : *found.find("bytes_sent_per_node")->items()) {
      bytes = std::max(bytes, *of_node.number());
    }
    if (job.is_raw_mean()) {
      CHECK(bytes + 1 >= kRounding * 2 * (job.nodes() - 1) / job.nodes() *
                             static_cast<double>(job.bytes_stored()));
    }
    const double wire_s = kRounding * bytes / job.bandwidth();
    CHECK(number(found, "iteration_s") >= wire_s);
    // The rate of the profile's own link is uncertain, so its p10 may be faster.
    if (!job.on_own_link()) CHECK(number(found, "iteration_s_p10") >= wire_s);
    const io::Document& replicas = *found.find("replicas");
    if (!replicas.is_null()) CHECK(number(replicas, "p10_s") >= wire_s);
  }
}

TEST_CASE("a loopback's all-reduce changes no other link's answer by more than its core time") {
  const tests::TemporaryFolder folder;
  folder.file("model.csv", "name,elements\nall,25000000\n");
  const auto iteration_s = [&](const costs::Profile& profile, const char* bandwidth) {
    costs::write_profile(folder.path("profile.yaml"), profile);
    const io::Document found = simulated({{"request", "simulate"},
                                          {"input", folder.path("model.csv")},
                                          {"plan", "ddp"},
                                          {"nnodes", 2},
                                          {"bandwidth", bandwidth},
                                          {"profile", folder.path("profile.yaml")}});
    return number(found, "iteration_s");
  };
  costs::Profile profile = costs::read_profile("v100-100g");
  profile.shared_host = true;
  profile.cores = 2;
  profile.link = {.bandwidth = 2e9, .bandwidth_both_ways = 2e9, .core_s_per_byte = 0.5e-9};
  costs::Profile without = profile;
  for (const double factor : {0.3, 0.55, 1.0, 1.8, 3.0}) {
    profile.all_reduce[2] = times_ideal(costs::kAllReduce, factor, 2, profile.link);
    const double core_s = profile.all_reduce[2](100'000'000);
    for (const char* const bandwidth : {"100Mbps", "1Gbps", "10Gbps", "100Gbps"}) {
      const double change = iteration_s(profile, bandwidth) - iteration_s(without, bandwidth);
      CAPTURE(factor, bandwidth, core_s);
      CHECK(change >= 0);
      CHECK(change <= core_s * (1 + 1e-6));
    }
    // 100 MB take 8 s over 100 Mbit/s, and faster cores do not change that.
    CHECK(iteration_s(profile, "100Mbps") == Approx(8));
  }
}

TEST_CASE("what is stored in half precision is all-reduced without a cast") {
  const tests::TemporaryFolder folder;
  // Each of 2 nodes sends 2·(2−1)/2 times 83 MB over 152.6 Gbit/s, without overhead and latency.
  const double wire_s = 83e6 * 8 / 152.6e9;
  for (const char* const dtype : {"bfloat16", "float16"}) {
    const io::Document request = {
        {"request", "simulate"},
        {"input", folder.file("model.yaml", fmt::format("name: m\ndtype: {}\ngradients:\n"
                                                        "- {{name: all, elements: 41500000}}\n",
                                                        dtype))},
        {"plan", "ddp"},
        {"nnodes", 2},
        {"profile", "v100-100g"},
        {"bandwidth", "152.6Gbps"},
        {"overhead", "0s"},
        {"latency", "0s"}};
    CHECK(number(simulated(request), "iteration_s") == Approx(wire_s));
    // The other half-precision type needs two casts. Each takes 10 us, plus the time of 6 bytes per
    // element at 80 % of 900 GB/s.
    io::Document other = request;
    other["plan"] = folder.file(
        "plan.yaml", fmt::format("schema: hipress.plan/1\nmodel: m\ntopology: allreduce\nnodes: 2\n"
                                 "gradients:\n- {{name: all, elements: 41500000, algorithm: {}, "
                                 "K: 1}}\n",
                                 std::string_view(dtype) == "float16" ? "bf16" : "fp16"));
    CHECK(number(simulated(other), "iteration_s") ==
          Approx(wire_s + 2 * (10e-6 + 6 * 41.5e6 / 720e9)).epsilon(1e-3));
  }
}
