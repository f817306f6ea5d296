#include "profiler/profiler.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "costs/cluster.hpp"
#include "io/error.hpp"
#include "io/processors.hpp"
#include "job/connect.hpp"
#include "profiler/sampling.hpp"
#include "replay/replay.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/planner/tool_run.hpp"
#include "tests/profiler/bound.hpp"
#include "transport/endpoint.hpp"

namespace hipress::profiler {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

const Progress kSilent = [](const std::string&) {};

TEST_CASE("a measured profile is complete, positive and survives its file", "[slow]") {
  const Options options{.algorithms = {"fp16"},
                        .nodes = 2,
                        .transport = "memory",
                        .effort = Effort::kQuick,
                        .exchanges = 2};
  const costs::Profile measured = measure(options, kSilent);

  const tests::TemporaryFolder folder;
  const std::string path = folder.path("profile.yaml");
  costs::write_profile(path, measured);
  const costs::Profile profile = costs::read_profile(path);

  // Times depend on the machine. But every cost must be measured, and grow with the size.
  const costs::CodecCosts& codec = profile.codec("fp16");
  for (const costs::Curve* curve :
       {&codec.encode, &codec.decode, &codec.decode_add, &profile.merge}) {
    CHECK((*curve)(1 << 20) > 0);
    CHECK((*curve)(1 << 26) > (*curve)(1 << 20));
  }
  CHECK(codec.encode_factor_quotients >= 1);
  CHECK(codec.encode_factor_quotients < 4);  // the encodes differ by a division only
  CHECK(profile.link.bandwidth > 0);
  // These are differences of measured times, which noise can make 0.
  CHECK(profile.link.overhead_s >= 0);
  CHECK(profile.link.core_s_per_message >= 0);
  CHECK(profile.memory_bandwidth > 0);
  CHECK(profile.cores >= 1);
  CHECK(profile.shared_host);
  CHECK(profile.fan_in.count(2) == 1);
  CHECK(profile.fan_out.count(2) == 1);
  CHECK(profile.all_reduce.at(2)(1 << 20) > 0);
  REQUIRE(profile.spread);
  CHECK(profile.spread->host >= 0.03);
  CHECK(profile.spread->links >= 0.02);
  for (const auto& series : profile.samples) CHECK_FALSE(series.samples.empty());
  CHECK(profile.samples.size() ==
        3 + 1 + 3 + 2 + 1);  // 3 of the codec, merge, 3 of links, fan-in and fan-out, all-reduce
}

TEST_CASE("links alone are measured on top of a base, by all processes of a job alike", "[slow]") {
  costs::Profile base = measure({.algorithms = {"fp16"},
                                 .nodes = 2,
                                 .transport = "memory",
                                 .effort = Effort::kQuick,
                                 .exchanges = 2},
                                kSilent);
  base.link.core_s_per_byte = 1.25e-9;
  base.link.core_s_per_message = 3e-6;
  base.shared_host = false;  // as if measured on several machines
  base.fingerprint = "0123456789abcdef";
  for (const std::string name : {"all_gather.2", "reduce_scatter.2", "all_to_all.2"})
    base.samples.push_back({.name = name, .samples = {{.x = 1, .median_s = 1}}});
  base.all_gather[2] = base.reduce_scatter[2] = base.all_to_all[2] = base.all_reduce.at(2);
  std::array<costs::Profile, 2> measured;
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto endpoint =
            transport::find_transport("memory").connect({.rank = rank,
                                                         .size = 2,
                                                         .job = "profile",
                                                         .plan = {},
                                                         .rendezvous = "local:profile",
                                                         .interface = {}});
        measured[rank] = measure({.algorithms = {},
                                  .nodes = 2,
                                  .transport = "memory",
                                  .effort = Effort::kQuick,
                                  .exchanges = 2,
                                  .endpoint = endpoint.get(),
                                  .base = &base},
                                 kSilent);
      });
    }
  }
  CHECK(measured[0].link == measured[1].link);
  CHECK(measured[0].codecs == base.codecs);
  CHECK(measured[0].merge == base.merge);
  // Measured on these links, not taken from the base.
  CHECK(measured[0].link.core_s_per_byte != 1.25e-9);
  CHECK(measured[0].link.core_s_per_message != 3e-6);
  CHECK(measured[0].link.core_factor_interrupting >= 1);
  CHECK(measured[0].shared_host);
  CHECK_THAT(measured[0].source, EndsWith("; kernels of profile measured 0123456789abcdef"));
  CHECK(measured[0].notes ==
        std::vector<std::string>{"kernels were measured on: " + base.hardware});
  CHECK(measured[0].link.bandwidth > 0);
  // The base keeps link.all_to_all, the source of its CPU costs; its other series link.* are
  // replaced. So there are 3 series of the codec, merge, all-to-all; hop, stream, cores, both ways;
  // fan-in, fan-out; all-reduce.
  CHECK(measured[0].samples.size() == 3 + 1 + 1 + 4 + 2 + 1);
  // The base's collectives of shards, on another network, are dropped; this transport has none.
  CHECK(measured[0].all_gather.empty());
  CHECK(measured[0].reduce_scatter.empty());
  CHECK(measured[0].all_to_all.empty());
}

TEST_CASE("what transfers cost the cores is measured anew on top of a base, and nothing else",
          "[slow]") {
  costs::Profile base = costs::read_profile("sosp21");
  base.link.core_factor_interrupting = 7;
  base.samples = {{.name = "link.cores", .samples = {}}, {.name = "link.hop", .samples = {}}};
  costs::Profile measured;
  job::run_thread_ranks("memory", 2, 60, [&](transport::Endpoint& endpoint) {
    costs::Profile of_rank = measure({.algorithms = {},
                                      .nodes = 2,
                                      .transport = "memory",
                                      .effort = Effort::kQuick,
                                      .exchanges = 2,
                                      .endpoint = &endpoint,
                                      .base = &base,
                                      .anew = Part::kCores},
                                     kSilent);
    if (endpoint.rank() == 0) measured = std::move(of_rank);
  });
  CHECK(measured.link.core_factor_interrupting != 7);
  CHECK_THAT(measured.source, Contains("; all but cores of profile"));
  CHECK(measured.samples.size() == base.samples.size());  // link.cores is replaced
  measured.link.core_s_per_byte = base.link.core_s_per_byte;
  measured.link.core_s_per_message = base.link.core_s_per_message;
  measured.link.core_factor_interrupting = base.link.core_factor_interrupting;
  CHECK(measured.link == base.link);
  CHECK(measured.codecs == base.codecs);
  CHECK(measured.hardware == base.hardware);
}

/// An endpoint that records with which ranks it exchanges messages, per measurement.
class Watched : public transport::Endpoint {
 public:
  explicit Watched(transport::Endpoint& endpoint) : endpoint_(endpoint) {}
  int rank() const override { return endpoint_.rank(); }
  int size() const override { return endpoint_.size(); }
  std::unique_ptr<transport::Exchange> prepare(std::vector<transport::Outgoing> outgoing,
                                               std::vector<transport::Incoming> incoming,
                                               transport::Events events) override {
    for (const auto& message : outgoing) peers[measured].insert(message.peer);
    for (const auto& message : incoming) peers[measured].insert(message.peer);
    return endpoint_.prepare(std::move(outgoing), std::move(incoming), std::move(events));
  }
  std::unique_ptr<transport::Collective> collective() override { return endpoint_.collective(); }
  std::vector<std::string> all_gather(const std::string& mine) override {
    return endpoint_.all_gather(mine);
  }
  void abort(int culprit, const std::string& reason) noexcept override {
    endpoint_.abort(culprit, reason);
  }

  std::string measured;
  std::map<std::string, std::set<int>> peers;

 private:
  transport::Endpoint& endpoint_;
};

TEST_CASE("between machines links set the pace, and cores are what they are kept busy", "[slow]") {
  const std::array<std::string, 3> boots{"a", "a", "b"};
  std::array<costs::Profile, 3> measured;
  std::array<std::map<std::string, std::set<int>>, 3> peers;
  job::run_thread_ranks("memory", 3, 60, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.rank());
    Watched watched(endpoint);
    measured[rank] = measure({.algorithms = {"fp16"},
                              .nodes = 3,
                              .transport = "memory",
                              .effort = Effort::kQuick,
                              .passes = 1,
                              .exchanges = 2,
                              .endpoint = &watched,
                              .boot = boots[rank]},
                             [&](const std::string& what) { watched.measured = what; });
    peers[rank] = watched.peers;
  });
  const costs::Profile& profile = measured[0];
  CHECK_FALSE(profile.shared_host);
  CHECK_THAT(profile.hardware, Contains("3 ranks of a job on 2 machines"));
  CHECK(costs::cluster_from_profile(profile, 3).host == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(profile.cores >= 1);
  CHECK(profile.link.core_s_per_message >= 0);
  for (const costs::Profile& other : measured) CHECK(other.link == profile.link);
  std::set<std::string> links;
  for (const auto& series : profile.samples) {
    if (series.name.starts_with("link.")) links.insert(series.name);
  }
  CHECK(links == std::set<std::string>{"link.hop", "link.stream", "link.cores", "link.both_ways"});
  // The link between machines is measured between ranks 0 and 2; 0 and 1 share a machine.
  for (const char* const what : {"one message at a time", "many messages"}) {
    CHECK(peers[0][what] == std::set{2});
    CHECK(peers[1][what].empty());
  }
}

TEST_CASE("kernels alone are measured anew on top of a base", "[slow]") {
  costs::Profile base;
  base.link = {.overhead_s = 3e-6, .bandwidth = 2e9, .latency_s = 5e-6};
  base.hardware = "two hosts and a cable";
  base.name = "cabled";
  base.fingerprint = "0123456789abcdef";
  base.notes = {"kernels were measured on: a machine of before", "take care"};
  base.cores = 7;
  base.shared_host = false;
  base.fan_in[2] = {.pieces = {{.a_s = 1e-5, .b_s = 1e-9}}};
  base.codecs["tbq"] = {};
  for (const char* name : {"link.hop", "link.all_to_all", "fan_in.2", "tbq.encode"}) {
    base.samples.push_back({.name = name, .samples = {{.x = 1, .median_s = 1e-6}}});
  }
  const costs::Profile measured = measure({.algorithms = {"fp16"},
                                           .nodes = 2,
                                           .transport = "memory",
                                           .effort = Effort::kQuick,
                                           .passes = 2,
                                           .base = &base,
                                           .anew = Part::kKernels},
                                          kSilent);
  CHECK(measured.link == base.link);
  CHECK(measured.fan_in == base.fan_in);
  CHECK(measured.hardware == base.hardware);
  CHECK_THAT(measured.source, EndsWith("; links of profile cabled 0123456789abcdef"));
  REQUIRE(measured.notes.size() == 2);
  CHECK(measured.notes[0] == "take care");
  CHECK_THAT(measured.notes[1], StartsWith("kernels were measured on: ") && !Contains("before"));
  CHECK(measured.cores == 7);  // from the base, like the core times
  CHECK_FALSE(measured.shared_host);
  CHECK(measured.memory_bandwidth > 0);
  CHECK(measured.codecs.size() == 1);
  CHECK(measured.codec("fp16").encode(1 << 20) > 0);
  std::vector<std::string> series;
  for (const auto& one : measured.samples) series.push_back(one.name);
  CHECK(series == std::vector<std::string>{"link.hop", "link.all_to_all", "fan_in.2", "fp16.encode",
                                           "fp16.decode", "fp16.decode_add", "merge"});
}

TEST_CASE("a profile is measured again while its machine changes, and then says so", "[slow]") {
  costs::Profile base;
  base.link = {.overhead_s = 3e-6, .bandwidth = 2e9, .latency_s = 5e-6};
  base.spread = {.host = 0.1, .links = 0.05, .compute = 0.02, .model = 0.03, .iterations = 0.05};
  base.probes = {.copy = 1e9, .codec = 2e9, .transport = 3e9};
  const Options options{.algorithms = {"fp16"},
                        .nodes = 2,
                        .transport = "memory",
                        .effort = Effort::kQuick,
                        .passes = 1,
                        .base = &base,
                        .anew = Part::kKernels};
  // `copies` has one value per probe; each measurement is between two probes.
  const auto measured = [&](std::vector<double> copies, int again) {
    std::size_t probed = 0;
    int times = 0;
    const costs::Profile profile = measure_while_steady(
        options, [&](const std::string& what) { times += what.starts_with("memory") ? 1 : 0; },
        [&] { return costs::Probes{.copy = copies.at(probed++), .codec = 5e9, .transport = 7e9}; },
        again);
    CHECK(probed == copies.size());
    return std::pair(profile, times);
  };
  const auto [settled, twice] = measured({4e9, 8e9, 8e9}, 3);
  CHECK(twice == 2);
  CHECK(settled.notes.size() == 1);  // it names the kernels' hardware
  CHECK(settled.spread->host == Approx(0.1));
  CHECK(settled.probes.copy == Approx(8e9));
  CHECK(settled.probes.codec == Approx(5e9));
  CHECK(settled.probes.transport == 3e9);  // from the base, like transfers

  const auto [changing, once] = measured({4e9, 8e9}, 0);
  CHECK(once == 1);
  CHECK(changing.spread->host == Approx(std::log(2)));
  REQUIRE(changing.notes.size() == 2);
  CHECK_THAT(changing.notes[1], Contains("varied by 100 %"));
}

TEST_CASE("processes that may use different numbers of cores code the same slices", "[slow]") {
  const std::vector<int> usable = io::usable_cores();
  if (usable.size() < 2) return;
  const costs::Profile base = {};
  std::array<costs::Profile, 2> measured;
  job::run_thread_ranks("memory", 2, 60, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.rank());
    if (rank == 0) bind_to(usable[0]);
    measured[rank] = measure({.algorithms = {"fp16"},
                              .nodes = 2,
                              .transport = "memory",
                              .effort = Effort::kQuick,
                              .passes = 1,
                              .exchanges = 2,
                              .endpoint = &endpoint,
                              .boot = rank == 0 ? "small" : "large",
                              .base = &base,
                              .anew = Part::kKernels},
                             kSilent);
  });
  CHECK(measured[0].codecs == measured[1].codecs);
  CHECK(measured[0].codec("fp16").encode(1 << 20) > 0);
}

TEST_CASE("times of several passes are the mean of the passes' medians") {
  // The passes' medians are 2, 5 and 5. Of nine times, the 10th percentile has index 0.8, the 90th
  // 7.2.
  const costs::Sample sample = summarise_passes(7, {{1, 2, 9}, {4, 5, 6}, {5, 5, 8}});
  CHECK(sample.x == 7);
  CHECK(sample.median_s == Approx(4));
  CHECK(sample.p10_s == Approx(1.8));
  CHECK(sample.p90_s == Approx(8.2));
  CHECK(sample.repetitions == 9);
}

TEST_CASE("the mean of iterations is the median of theirs, and no time counts too much in it") {
  // The median of all nine times is 2, so 9 is capped at 4: the means are 7/3, 2 and 10/3.
  const costs::Sample sample = summarise_iterations(7, {{1, 2, 9}, {2, 2, 2}, {3, 4, 3}});
  CHECK(sample.x == 7);
  CHECK(sample.median_s == Approx(2));
  CHECK(sample.repetitions == 9);
  CHECK(sample.mean_s == Approx(7.0 / 3));
  // The machine has half its speed in one iteration of five.
  CHECK(summarise_iterations(7, {{1, 1}, {1, 1}, {2, 2}, {1, 1}, {1, 1}}).mean_s == Approx(1));
}

TEST_CASE("what interrupts tasks now and then is charged to all alike") {
  Interruptions interruptions;
  CHECK(interruptions.factor() == 1);
  // Times are cut at 2e-3, twice the median: 13e-3 with the interruption, 4e-3 without it.
  interruptions.add({{1e-3, 1e-3, 11e-3}});
  CHECK(interruptions.factor() == Approx(13.0 / 4));
  interruptions.add(std::vector<std::vector<double>>(4, {1e-3, 1e-3, 1e-3}));
  CHECK(interruptions.factor() == Approx((13.0 + 12) / (4 + 12)));
  // Times of 1.9e-3, of a slow iteration, are below twice the median: no interruption.
  interruptions.add({{1e-3, 1e-3, 1e-3}, {1.9e-3, 1.9e-3}});
  CHECK(interruptions.factor() == Approx((13.0 + 12 + 6.8) / (4 + 12 + 6.8)));

  Interruptions stopped;  // the machine was stopped for a minute
  stopped.add({{1e-3, 1e-3, 60}});
  CHECK(stopped.factor() == Approx((1 + 1 + 2 + 20) / 4.0));
}

TEST_CASE("a bandwidth is the slope over sizes, or it is said what tells none") {
  // From 1 MB in 1 ms to 4 MB in 3 ms, 3 MB take 2 ms.
  const std::vector<costs::Sample> rising = {{.x = 1000000, .median_s = 1e-3},
                                             {.x = 4000000, .median_s = 3e-3}};
  CHECK(bandwidth_of("a hop", rising) == Approx(1.5e9));
  for (const double same_or_less_s : {1e-3, 0.9e-3}) {
    const std::vector<costs::Sample> flat = {{.x = 1000000, .median_s = 1e-3},
                                             {.x = 4000000, .median_s = same_or_less_s}};
    CHECK_THROWS_AS(bandwidth_of("a hop", flat), io::RunError);
    CHECK_THROWS_WITH(bandwidth_of("a hop", flat),
                      Contains("a hop: 1MB took 1ms") && Contains("measure again"));
  }
}

TEST_CASE("a number of ranks that is not the launcher's is refused before anybody is awaited",
          "[tool]") {
  const planner::Workplace workplace;
  const planner::ToolRun run = workplace.run(
      "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 hipress-profile --quick --nnodes 3 --timeout 1 "
      "--rendezvous file://$PWD");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Contains("--nnodes is 3, but torchrun started 2 ranks"));
}

TEST_CASE("an algorithm with several parameters is one algorithm", "[tool]") {
  const planner::Workplace workplace;
  const planner::ToolRun run =
      workplace.run("hipress-profile --algorithm 'fp16,dgc(rho=0.02,momentum=7)'");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Contains("momentum=7 is out of range"));
}

TEST_CASE("a profile that cannot be written is not measured", "[tool]") {
  const planner::Workplace workplace;
  const planner::ToolRun run =
      workplace.run("hipress-profile --quick --nnodes 2 --algorithm fp16 --output absent/p.yaml");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Contains("absent/p.yaml: cannot be written") && !Contains("measuring"));
}

TEST_CASE("gloo's collectives of shards are measured between ranks of one process",
          "[tool][slow]") {
  const planner::Workplace workplace;
  const planner::ToolRun run = workplace.run(
      "hipress-profile --quick --again 0 --base sosp21 --transport gloo --nnodes 3 --output "
      "p.yaml");
  REQUIRE(run.status == 0);
  const costs::Profile profile = costs::read_profile((workplace.path() / "p.yaml").string());
  for (const int ranks : {2, 3}) {
    for (const auto measured : {&costs::Profile::all_gather, &costs::Profile::reduce_scatter,
                                &costs::Profile::all_to_all}) {
      CHECK((profile.*measured).at(ranks)(1 << 20) > 0);
    }
    const auto of = [&](const std::string& series) {
      return std::ranges::any_of(profile.samples, [&](const costs::Profile::Series& one) {
        return one.name == fmt::format("{}.{}", series, ranks) && one.samples.front().x > 0;
      });
    };
    CHECK((of("all_gather") && of("reduce_scatter") && of("all_to_all")));
  }
}

TEST_CASE("processes that build on different profiles are no job", "[tool]") {
  const planner::Workplace workplace;
  const std::string rank =
      "WORLD_SIZE=2 hipress-profile --quick --algorithm fp16 --timeout 20 "
      "--rendezvous file://$PWD --base ";
  const planner::ToolRun run =
      workplace.run("sh -c '(LOCAL_RANK=1 RANK=1 " + rank + "v100-100g) & LOCAL_RANK=0 RANK=0 " +
                    rank + "sosp21; status=$?; wait; exit $status'");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Contains("has plan") && !Contains("measuring"));
}

TEST_CASE("a part is measured anew on a base alone, and what has no effect is said", "[tool]") {
  const planner::Workplace workplace;
  const planner::ToolRun anew = workplace.run("hipress-profile --anew kernels --nnodes 1");
  CHECK(anew.status == 2);
  CHECK_THAT(anew.err, Contains("--anew measures only a part") && Contains("--base"));
  // One rank has no links, which is refused, but not before the options are checked.
  for (const char* const options :
       {"--passes 3 --base sosp21", "--passes 3 --base sosp21 --anew links"}) {
    const planner::ToolRun run =
        workplace.run("hipress-profile --nnodes 1 " + std::string(options));
    CHECK(run.status == 2);
    CHECK_THAT(run.err, Contains("--passes has no effect"));
  }
  const planner::ToolRun job = workplace.run(
      "hipress-profile --nnodes 1 --base sosp21 --algorithm onebit --interface lo --insecure "
      "--rendezvous file:///absent --job other");
  CHECK(job.status == 2);
  for (const char* const option :
       {"--algorithm", "--interface", "--insecure", "--rendezvous", "--job"}) {
    CHECK_THAT(job.err, Contains(option + std::string(" has no effect: ")));
  }
  const planner::ToolRun cores = workplace.run("hipress-profile --base sosp21 --anew cores");
  CHECK(cores.status == 2);
  CHECK_THAT(cores.err, Contains("--anew cores") && Contains("launcher"));
  const planner::ToolRun kernels =
      workplace.run("hipress-profile --nnodes 1 --passes 3 --base sosp21 --anew kernels");
  CHECK_THAT(kernels.err, !Contains("no effect"));
}

TEST_CASE("requests that cannot be measured are refused") {
  const costs::Profile base = {};
  CHECK_THROWS_AS(measure({.algorithms = {}, .nodes = 2}, kSilent), io::InputError);
  CHECK_THROWS_AS(
      measure({.algorithms = {}, .nodes = 2, .base = &base, .anew = Part::kKernels}, kSilent),
      io::InputError);
  CHECK_THROWS_AS(measure({.algorithms = {"fp16"}, .nodes = 1}, kSilent), io::InputError);
  CHECK_THROWS_WITH(measure({.algorithms = {"zip"}, .nodes = 2}, kSilent),
                    Contains("zip") && Contains("onebit"));
}

}  // namespace
}  // namespace hipress::profiler
