#include "sweep/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <sstream>

#include "costs/levels.hpp"
#include "io/error.hpp"
#include "sim/graph_size.hpp"
#include "sim/scenario.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::sweep {
namespace {

using namespace sim;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tests::complaint;

/// Settings without named plans: nothing is planned.
const Planning kNoPlans = {.names = {}, .make = {}};

/// A folder with a model, a profile with round costs (1 ns per byte, 10 us per message, 100 us per
/// codec step) and a spec.
class SweepFixture {
 public:
  SweepFixture() {
    folder.file("two.yaml",
                "name: two\nforward: 1ms\ngradients:\n"
                "  - {name: late, elements: 64000, ready: 3ms}\n"
                "  - {name: early, elements: 320, ready: 2ms}\n");
    folder.file("cheap.yaml",
                "schema: hipress.profile/1\nname: cheap\nsource: test\n"
                "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s}\n"
                "kernels:\n  merge: {pieces: []}\n  codecs:\n" +
                    codec("onebit", "1e-4") + codec("fp16", "1e-5") +
                    "links: {overhead: 10us, bandwidth: 8Gbps, latency: 5us}\n...\n");
  }

  std::string spec(const std::string& text) const { return folder.file("spec.yaml", text); }

  std::string csv(const std::string& text, unsigned jobs = 1, const Shard& shard = {}) const {
    const SweepSpec read = read_sweep(spec(text));
    Sweep sweep(read, shard, kNoPlans);
    std::ostringstream out;
    write_sweep(out, read, shard, sweep.run(jobs, {}));
    return out.str();
  }

  void refuses(const std::string& text, int line, const std::string& culprit,
               const std::string& remedy) const {
    CAPTURE(text);
    const std::string message = complaint([&] { csv(text); });
    const std::string place = line > 0 ? ":" + std::to_string(line) + ": " : ": ";
    CHECK_THAT(message, StartsWith(folder.path("spec.yaml") + place) && Contains(culprit) &&
                            Contains(remedy));
  }

  tests::TemporaryFolder folder;

 private:
  static std::string codec(const std::string& name, const std::string& seconds) {
    std::string text = "    " + name + ":\n";
    for (const char* operation : {"encode", "decode", "decode_add"}) {
      text += std::string("      ") + operation + ": {pieces: [{from: 0, a_s: " + seconds +
              ", s_per_element: 0}]}\n";
    }
    return text;
  }
};

const std::string kBase = "model: two.yaml\nprofile: cheap.yaml\n";
const std::string kSeveral = kBase +
                             "topology: [ps, ring]\nnodes: [1, 2, 3]\nplan: [none, all]\n"
                             "algorithm: [onebit, fp16]\npartitions: [plan, 2]\n"
                             "network: [port, fair]\nbandwidth: [1GB/s, 100MB/s]\n";

TEST_CASE_METHOD(SweepFixture, "a point has its axes, its times and the speed-up over none") {
  // Ring of two nodes, K = 2. Gradient 'late', ready at 4 ms, determines the time: raw, it takes
  // two steps of 10 + 128 + 5 us, which end at 4.286 ms.
  const std::string text = csv(kBase + "topology: ring\nnodes: 2\nplan: [none, all]\n");
  std::istringstream lines(text);
  std::string header, none, all, end;
  std::getline(lines, header);
  std::getline(lines, none);
  std::getline(lines, all);
  CHECK(!std::getline(lines, end));
  CHECK(header ==
        "model,topology,nodes,plan,algorithm,partitions,profile,cluster,network,"
        "bandwidth_bytes_per_s,latency_s,overhead_s,compute_speed,iteration_s,synchronisation_s,"
        "compute_s,exposed_communication_s,speedup,tasks,speedup_over_ddp,compute_time_s,"
        "schedule,iteration_s_p10,iteration_s_p90,speedup_over_ddp_p10,speedup_over_ddp_p90,rank,"
        "ratio,steps,fragments,reshard,gpus_per_node,hosts_per_rack,oversubscription,stragglers,"
        "straggler_speed,slow_link,machine,cards");
  // A node has 3 computing tasks. Per gradient and partition there are 5(N−1) = 5 tasks if it is
  // raw, and 7(N−1)+2 = 9 if it is compressed.
  CHECK(none ==
        "two.yaml,ring,2,none,onebit,plan,cheap.yaml,,fair,1000000000,5e-06,1e-05,1,"
        "0.004286,0.003286,0.004,0.000286,1,26,,,ddp,,,,,,,,,,,,,0,0.5,1,,");
  CHECK_THAT(all, StartsWith("two.yaml,ring,2,all,onebit,plan,cheap.yaml,,fair,1000000000,5e-06,"));
  CHECK_THAT(all, Contains(",42,,,ddp,,,,,"));
}

TEST_CASE_METHOD(SweepFixture,
                 "axis compute_time gives a model's times, and its plans are made anew") {
  const SweepSpec read = read_sweep(
      spec(kBase + "topology: ring\nnodes: 2\nplan: [none, all]\ncompute_time: [4ms, 8ms]\n"));
  Sweep sweep(read, {}, kNoPlans);
  CHECK(sweep.size().graphs == 4);
  const std::vector<SweepRow> rows = sweep.run(1, {});
  REQUIRE(rows.size() == 4);
  for (const SweepRow& row : rows) {
    const double given_s = *read.values[kComputeTime][row.point[kComputeTime]].number;
    CHECK(casync::to_seconds(row.compute) == Approx(given_s));
    CHECK(row.iteration > row.compute);
  }
  std::ostringstream csv;
  write_sweep(csv, read, {}, rows);
  CHECK_THAT(csv.str(), Contains(",0.004,ddp,") && Contains(",0.008,ddp,"));
  CHECK_THROWS_WITH(read_sweep(spec(kBase + "compute_time: 80\n")), Contains("compute_time"));
  CHECK_THROWS_WITH(Sweep(read_sweep(spec(kBase + "compute_time: 0s\n")), {}, kNoPlans),
                    Contains("compute_time"));
}

TEST_CASE_METHOD(SweepFixture, "axis schedule gives a step's mean over a period") {
  const SweepSpec read = read_sweep(
      spec(kBase + "topology: ring\nnodes: 2\nplan: none\nschedule: [ddp, 'local(steps=10)']\n"));
  Sweep sweep(read, {}, kNoPlans);
  const std::vector<SweepRow> rows = sweep.run(1, {});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].compute == rows[1].compute);
  // Communication is exposed only in one of ten steps.
  const casync::Picoseconds exposed[] = {rows[0].iteration - rows[0].compute,
                                         rows[1].iteration - rows[1].compute};
  CHECK(exposed[1] > casync::Picoseconds{});
  CHECK(exposed[1] <= exposed[0] / 10 + casync::Picoseconds(1));
  CHECK(rows[1].speedup > 1);
  std::ostringstream csv;
  write_sweep(csv, read, {}, rows);
  CHECK_THAT(csv.str(), Contains(",local(steps=10),"));
  CHECK_THROWS_WITH(read_sweep(spec(kBase + "schedule: local(steps=0)\n")),
                    Contains("schedule") && Contains("steps must be"));
  CHECK_THROWS_WITH(
      Sweep(read_sweep(spec(kBase + "schedule: 'local(fragments=9)'\n")), {}, kNoPlans),
      Contains("schedule") && Contains("give at most that many"));
}

TEST_CASE_METHOD(SweepFixture,
                 "of sharded schedules every GPU is a node, and baselines keep hosts") {
  const std::string gpus = folder.file(
      "gpus.yaml", "nodes: 4\ngpus_per_node: 4\ngpu_link: {bandwidth: 10GB/s, overhead: 1us}\n");
  const std::string uneven =
      folder.file("uneven.yaml",
                  "nodes: 4\ngpus_per_node: 4\ngpu_link: {bandwidth: 10GB/s, overhead: 1us}\n"
                  "compute_speed: {3: 0.5}\n");
  const SweepSpec read = read_sweep(spec(kBase + "topology: ring\nnodes: 4\nplan: [none, fp16]\n"
                                                 "schedule: [ddp, fsdp, 'hsdp(shard=4)']\n"
                                                 "cluster: [gpus.yaml, uneven.yaml]\n"));
  const std::vector<SweepRow> rows = Sweep(read, {}, kNoPlans).run(1, {});
  REQUIRE(rows.size() == 12);
  for (const SweepRow& row : rows) {
    const AxisValue& schedule = read.values[kSchedule][row.point[kSchedule]];
    CAPTURE(schedule.text);
    Scenario scenario = {.model = models::read_model(folder.path("two.yaml")),
                         .plan = {},
                         .profile = costs::read_profile(folder.path("cheap.yaml")),
                         .cluster = {}};
    const std::string& file = row.point[kCluster] == 0 ? gpus : uneven;
    scenario.cluster = costs::read_cluster(file, scenario.profile, 4);
    if (schedule.text != "ddp") scenario.cluster = costs::of_gpus(scenario.cluster);
    scenario.plan = plans::resolve_plan(read.values[kPlan][row.point[kPlan]].text,
                                        {.model = scenario.model,
                                         .topology = "ring",
                                         .nodes = scenario.cluster.nodes,
                                         .algorithm = "onebit"})
                        .plan;
    scenario.plan.schedule = casync::Schedule::parse(schedule.text);
    scenario.plan.gpus_per_node = scenario.cluster.gpus_per_node;
    CHECK(row.iteration == simulate(scenario, expand(scenario)).iteration);
  }
  // The nodes of one host have half the speed.
  CHECK(rows[3].compute > rows[2].compute);
}

TEST_CASE_METHOD(SweepFixture, "ZeRO++ in a sweep is made for the GPUs of each point") {
  folder.file("gpus.yaml",
              "nodes: 4\ngpus_per_node: 4\ngpu_link: {bandwidth: 10GB/s, overhead: 1us}\n");
  const SweepSpec read = read_sweep(
      spec("model: two.yaml\nprofile: h100-400g\nnodes: 4\nplan: zeropp\ncluster: gpus.yaml\n"
           "bandwidth: [1Gbps, 100Gbps]\n"));
  const std::vector<SweepRow> rows = Sweep(read, {}).run(1, {});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].iteration > rows[1].iteration);
  folder.file("sites.yaml",
              "nodes: 8\ngpus_per_node: 4\ngpu_link: {bandwidth: 10GB/s, overhead: 1us}\n"
              "sites: {nodes: 2, link: {bandwidth: 1Gbps}}\n");
  const auto refused = [&](const std::string& what) {
    return complaint([&] {
      const SweepSpec of_sites = read_sweep(spec("model: two.yaml\nprofile: h100-400g\nnodes: 4\n" +
                                                 what + "\ncluster: sites.yaml\n"));
      Sweep(of_sites, {}).run(1, {});
    });
  };
  for (const char* what : {"plan: zeropp", "plan: none\nschedule: fsdp"}) {
    CHECK_THAT(refused(what), Contains("give nodes on hosts of their own, without sites"));
  }
}

TEST_CASE_METHOD(SweepFixture, "a sweep is folded where nodes are alike, with the same rows") {
  // In the second cluster, one node's speed differs in the last bit, so it is not folded.
  folder.file("alike.yaml", "nodes: 4\ncompute_speed: {3: 1}\n");
  folder.file("nearly.yaml", "nodes: 4\ncompute_speed: {3: 1.0000000000000002}\n");
  const SweepSpec read =
      read_sweep(spec(kBase + "topology: [ps, ring]\nnodes: 4\nplan: [none, all]\n"
                              "cluster: [alike.yaml, nearly.yaml]\nnetwork: [port, fair]\n"));
  Sweep sweep(read, {}, kNoPlans);
  // There are 2·2 plans. 'late' has 64000 = 4·32·500 elements, but 'early' has 320, not a
  // multiple of 4·32. So no graph is folded, and both clusters share the 4 graphs. With 384
  // elements, each plan has a folded and a whole graph.
  CHECK(sweep.size().graphs == 4);
  folder.file("two.yaml",
              "name: two\nforward: 1ms\ngradients:\n"
              "  - {name: late, elements: 64000, ready: 3ms}\n"
              "  - {name: early, elements: 384, ready: 2ms}\n");
  Sweep folded(read, {}, kNoPlans);
  CHECK(folded.size().graphs == 8);
  const std::vector<SweepRow> rows = folded.run(1, {});
  REQUIRE(rows.size() == 16);
  for (const SweepRow& row : rows) {
    if (row.point[kCluster] != 0) continue;
    Point other = row.point;
    other[kCluster] = 1;
    const auto whole = std::find_if(rows.begin(), rows.end(),
                                    [&](const SweepRow& one) { return one.point == other; });
    REQUIRE(whole != rows.end());
    CHECK(row.iteration == whole->iteration);
    CHECK(row.compute == whole->compute);
    CHECK(row.tasks == whole->tasks);
  }
}

TEST_CASE_METHOD(SweepFixture, "a sweep agrees with the simulation of each of its points") {
  const SweepSpec read = read_sweep(spec(kSeveral));
  Sweep sweep(read, {}, kNoPlans);
  const std::vector<SweepRow> rows = sweep.run(1, {});
  REQUIRE(rows.size() == 2u * 3 * 2 * 2 * 2 * 2 * 2);
  // Raw, onebit and fp16 each have 10 graphs: 2·3 with K = N, by topology and nodes (the raw ones
  // are the baselines), and 2·2 with K = 2, since for N = 2 that is K = N. Each runs on 2·2
  // machines.
  CHECK(sweep.size().graphs == 3 * (6 + 4));
  CHECK(sweep.size().simulations == 4 * sweep.size().graphs);
  const SweepRow& last = rows.back();
  Scenario scenario{.model = models::read_model(folder.path("two.yaml")),
                    .plan = {},
                    .profile = costs::read_profile(folder.path("cheap.yaml")),
                    .cluster = {}};
  scenario.plan = {
      .topology = "ring",
      .nodes = 3,
      .algorithms = {{.name = "fp16",
                      .encoded_bytes = [](std::int64_t elements) { return 2 * elements; }}},
      .decisions = {{0, 2}, {0, 2}}};
  scenario.cluster = costs::cluster_from_profile(scenario.profile, 3);
  scenario.cluster.link.bandwidth = scenario.cluster.link.bandwidth_both_ways = 100e6;
  const casync::TaskGraph graph = casync::expand(scenario.model, scenario.plan);
  CHECK(last.iteration == simulate(scenario, graph).iteration);
  CHECK(last.tasks == static_cast<std::int64_t>(graph.tasks()));
}

TEST_CASE_METHOD(SweepFixture, "the output is the same for any jobs, and shards add up to it") {
  const std::string whole = csv(kSeveral);
  for (const unsigned jobs : {1u, 2u, 7u}) CHECK(csv(kSeveral, jobs) == whole);
  for (const std::int64_t count : {2, 5, 200}) {  // more shards than points: some are empty
    std::string joined;
    for (std::int64_t index = 1; index <= count; ++index) {
      joined += csv(kSeveral, 2, {.index = index, .count = count});
    }
    CHECK(joined == whole);
  }
}

TEST_CASE_METHOD(SweepFixture, "progress counts to the number of simulations") {
  const SweepSpec read = read_sweep(spec(kSeveral));
  Sweep sweep(read, {}, kNoPlans);
  std::int64_t calls = 0, all = 0;
  bool in_order = true;
  sweep.run(2, [&](std::int64_t done, std::int64_t total) {
    in_order = in_order && done == ++calls;
    all = total;
  });
  CHECK(in_order);
  CHECK(calls == all);
  CHECK(all == sweep.size().simulations);
}

TEST_CASE_METHOD(SweepFixture, "machines, ranges and clusters change what they name") {
  folder.file("slow.yaml", "compute_speed: {0: 0.5}\nlink: {latency: 1us}\n");
  // Computation takes 1 + 3 ms at the speed of the spec, and twice as long on the slow node.
  const std::string text = csv(kBase +
                               "nodes: 2\nplan: none\ncluster: slow.yaml\n"
                               "compute_speed: {from: 1, to: 4, times: 2}\n");
  for (const char* cell : {",1,0.008", ",2,0.004", ",4,0.002"}) CHECK_THAT(text, Contains(cell));
  CHECK_THAT(text, Contains("slow.yaml,fair,1000000000,1e-06,1e-05,"));
  const SweepSpec ranges = read_sweep(spec(kBase + "nodes: {from: 2, to: 16, times: 2}\n"
                                                   "latency: {from: 0us, to: 1ms, step: 100us}\n"));
  CHECK(ranges.values[kNodes].size() == 4);
  CHECK(ranges.values[kLatency].size() == 11);
  CHECK(ranges.points() == 44);
}

TEST_CASE_METHOD(SweepFixture, "synchronisation begins where forward really ends") {
  // Computation takes 1 + 3 ms at speed 1. At speed 0.5, forward ends after 2 of 8 ms; at speed 8,
  // after 0.125 of 0.5 ms.
  const std::string text = csv(kBase + "nodes: 1\nplan: none\ncompute_speed: [0.5, 8]\n");
  CHECK_THAT(text,
             Contains(",0.5,0.008,0.006,0.008,0,1,") && Contains(",8,0.0005,0.000375,0.0005,0,1,"));
}

TEST_CASE_METHOD(SweepFixture, "a negative time has its sign in front") {
  const SweepSpec read = read_sweep(spec(kBase));
  SweepRow row;
  row.synchronisation = Picoseconds(-250'000'000'000);
  row.compute = Picoseconds(1'500'000'000'000);
  std::ostringstream out;
  write_sweep(out, read, {}, {row});
  CHECK_THAT(out.str(), Contains(",0,-0.25,1.5,-1.5,1,0,,,ddp,"));
}

/// Planning with made-up plans. `best` is `none` on links of at least 500 MB/s, and `all` on slower
/// ones. `ddp` all-reduces.
Planning fake_planning(std::atomic<int>* made = nullptr) {
  const auto make = [made](
                        std::string_view name,
                        const planner::PlanRequest& request) -> std::optional<plans::ResolvedPlan> {
    if (made) ++*made;
    if (name == "impossible") return std::nullopt;
    if (name == "refused") throw io::InputError("no plan today");
    const bool ddp = name == "ddp";
    const costs::Cluster& cluster = request.machines.cluster;
    const bool raw = ddp || cluster.link.bandwidth >= 500e6;
    return plans::resolve_plan(raw ? "none" : "all",
                               {.model = request.model,
                                .topology = ddp ? "allreduce" : request.topology,
                                .nodes = cluster.nodes,
                                .algorithm = request.algorithm});
  };
  return {.names = {{"best", "help", true},
                    {"ddp", "help", false},
                    {"impossible", "", true},
                    {"refused", "", true}},
          .make = make};
}

const std::string kPlanned = kBase +
                             "topology: ring\nnodes: [2, 3]\nplan: [none, all, best, ddp]\n"
                             "bandwidth: [1GB/s, 100MB/s]\n";

TEST_CASE_METHOD(SweepFixture, "a plan that is made is made for the machines of each point") {
  const SweepSpec read = read_sweep(spec(kPlanned));
  std::atomic<int> made = 0;
  Sweep sweep(read, {}, fake_planning(&made));
  // `best` is made for 2 numbers of nodes on 2 links. `ddp` does not depend on links.
  CHECK(made == 2 * 2 + 2);
  CHECK(sweep.size().planned == 2 * 2 + 2);
  // The made plans decide like `none` or `all`, and share their graphs.
  CHECK(sweep.size().graphs == 2 * 3);
  const std::vector<SweepRow> rows = sweep.run(1, {});
  REQUIRE(rows.size() == 2 * 4 * 2);
  const auto row = [&](std::size_t nodes, std::size_t plan, std::size_t bandwidth) {
    return rows[(nodes * 4 + plan) * 2 + bandwidth];
  };
  for (const std::size_t nodes : {0u, 1u}) {
    CHECK(row(nodes, 2, 0).iteration == row(nodes, 0, 0).iteration);
    CHECK(row(nodes, 2, 1).iteration == row(nodes, 1, 1).iteration);
    CHECK(row(nodes, 2, 1).iteration != row(nodes, 0, 1).iteration);
  }
}

TEST_CASE_METHOD(SweepFixture, "the speed-up over DDP is beside that over none") {
  const SweepSpec read = read_sweep(spec(kPlanned));
  const std::vector<SweepRow> rows = Sweep(read, {}, fake_planning()).run(1, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SweepRow& ddp = rows[i / 8 * 8 + 6 + i % 2];
    REQUIRE(ddp.speedup_over_ddp == 1.0);
    CHECK(*rows[i].speedup_over_ddp == Approx(static_cast<double>(ddp.iteration.count()) /
                                              static_cast<double>(rows[i].iteration.count())));
  }
  // An all-reduce that was not measured counts as an ideal ring. With two nodes, 'late' takes 2
  // steps of 10 + 128 + 5 us after 4 ms, as in the raw ring.
  CHECK(rows[0].speedup_over_ddp == 1.0);
}

TEST_CASE_METHOD(SweepFixture, "plans that are made are the same for any jobs, and in shards") {
  const auto csv_of = [&](unsigned jobs, const Shard& shard) {
    const SweepSpec read = read_sweep(spec(kPlanned));
    std::int64_t calls = 0;
    Planning planning = fake_planning();
    planning.jobs = jobs;
    bool in_order = true;
    planning.progress = [&](std::int64_t done, auto) { in_order = in_order && done == ++calls; };
    Sweep sweep(read, shard, planning);
    CHECK(in_order);
    CHECK(calls == sweep.size().planned);
    std::ostringstream out;
    write_sweep(out, read, shard, sweep.run(jobs, {}));
    return out.str();
  };
  const std::string whole = csv_of(1, {});
  CHECK(csv_of(3, {}) == whole);
  std::string joined;
  for (std::int64_t index = 1; index <= 5; ++index) {
    joined += csv_of(2, {.index = index, .count = 5});
  }
  CHECK(joined == whole);
}

TEST_CASE_METHOD(SweepFixture, "a plan that cannot be made is refused at its line") {
  const auto refusal = [&](const std::string& text) {
    const SweepSpec read = read_sweep(spec(kBase + text));
    return complaint([&] { Sweep(read, {}, fake_planning()); });
  };
  CHECK_THAT(refusal("topology: ring\nplan: [none, impossible]\n"),
             Contains("spec.yaml:4: plan 'impossible'") && Contains("topology ring"));
  CHECK_THAT(refusal("plan: refused\n"), Contains("spec.yaml:3: plan 'refused': no plan today"));
  CHECK_THAT(refusal("plan: best\npartitions: [plan, 2]\n"),
             Contains("spec.yaml:3: plan 'best'") && Contains("leave out axis partitions"));
  // Without a named plan `best`, that word counts as a file or a built-in name.
  refuses(kBase + "plan: best\n", 3, "best", "threshold");
}

TEST_CASE_METHOD(SweepFixture, "without a plan ddp there is no speed-up over it") {
  Planning planning = fake_planning();
  planning.make = [](std::string_view, const planner::PlanRequest&) { return std::nullopt; };
  const SweepSpec read = read_sweep(spec(kBase + "nodes: 2\nplan: none\n"));
  CHECK(!Sweep(read, {}, planning).run(1, {}).front().speedup_over_ddp);
  planning.names.clear();
  CHECK(!Sweep(read, {}, planning).run(1, {}).front().speedup_over_ddp);
}

TEST_CASE_METHOD(SweepFixture, "the planner makes the plans unless told otherwise") {
  const SweepSpec read = read_sweep(spec(kBase + "topology: ring\nnodes: 2\nplan: [none, ddp]\n"));
  Sweep sweep(read, {});
  CHECK(sweep.size().planned == 1);
  const std::vector<SweepRow> rows = sweep.run(1, {});
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].speedup_over_ddp == 1.0);
  CHECK(rows[0].speedup_over_ddp == Approx(static_cast<double>(rows[1].iteration.count()) /
                                           static_cast<double>(rows[0].iteration.count())));
}

TEST_CASE_METHOD(SweepFixture, "axes without effect are found") {
  const SweepSpec read =
      read_sweep(spec(kBase + "nodes: [1]\nplan: none\nlatency: [1us, 2us]\ncompute_speed: [1, 2]\n"
                              "algorithm: [onebit, fp16]\n"));
  CHECK(axes_without_effect(read, Sweep(read, {}, kNoPlans).run(1, {})) ==
        std::vector<std::string_view>{"algorithm", "latency"});
}

TEST_CASE_METHOD(SweepFixture, "a spec that is wrong says where, and what to do") {
  refuses("nodes: 2\n", 1, "missing key 'model'", "");
  refuses("- vgg19\n", 1, "must be a map", "");
  refuses(kBase + "nods: 2\n", 3, "nods", "did you mean 'nodes'");
  refuses(kBase + "nodes: [2, 2]\n", 3, "'2' is given twice", "");
  refuses(kBase + "nodes: []\n", 3, "has no values", "leave the axis out");
  refuses(kBase + "nodes:\n", 3, "nodes must be a positive integer", "");
  refuses(kBase + "nodes:\n  - 2\n  - 0\n", 5, "nodes[1] must be a positive integer", "'0'");
  refuses(kBase + "bandwidth: 25\n", 3, "bandwidth must be a bandwidth with unit", "Gbps");
  refuses(kBase + "latency: [1us, 2]\n", 3, "latency[1]", "5us");
  refuses(kBase + "compute_speed: 0\n", 3, "0.001 to 1000", "1 is nominal");
  refuses(kBase + "compute_speed: [1, 1e30]\n", 3, "0.001 to 1000", "'1e30'");
  refuses(kBase + "topology: star\n", 3, "star", "ps, ring");
  refuses(kBase + "network: torus\n", 3, "torus", "port, fair");
  refuses(kBase + "algorithm: zip\n", 3, "zip", "onebit");
  refuses(kBase + "algorithm: none\n", 3, "algorithm", "plan: none");
  refuses(kBase + "algorithm: tbq\n", 3, "tbq", "onebit");  // the profile lacks it
  refuses(kBase + "plan: some\n", 3, "some", "threshold");
  refuses(kBase + "plan: none.txt\n", 3, "none.txt", "");
  refuses(kBase + "cluster: none.yaml\n", 3, "none.yaml", "");
  refuses("profile: cheap.yaml\nmodel: [two.yaml, vgg99]\n", 2, "vgg99", "vgg19");
  refuses("model: two.yaml\nprofile: cheep\n", 2, "cheep", "sosp21");
  refuses(kBase + "partitions: all\n", 3, "partitions must be", "");
  refuses(kBase + "schema: hipress.sweep/2\n", 3, "hipress.sweep/1", "");
  refuses(kBase + "model: vgg19\n", 3, "given twice", "");
  folder.file("three.yaml", "nodes: 3\n");
  refuses(kBase + "cluster: three.yaml\nnodes: [2, 4]\n", 3, "three.yaml:1", "leave out one");
  folder.file("four.yaml", "nodes: 4\n");
  refuses(kBase + "cluster: [three.yaml, four.yaml]\n", 3, "three.yaml:1",
          "axis nodes is 16 unless");
  folder.file("plan.txt", "late,64000,y,2\n");
  refuses(kBase + "plan: plan.txt\n", 3, "early", "missing");
}

TEST_CASE_METHOD(SweepFixture, "ranges that are wrong say so") {
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s}\n", 3, "one of 'times'", "'points'");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s, times: 2, points: 3}\n", 3, "one of", "");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s, times: 2, scale: log}\n", 3, "scale",
          "leave it out");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s, points: 1}\n", 3, "points", "2");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s, points: 3, scale: lg}\n", 3, "lg", "log");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 1GB/s, points: 3}\n", 3, "two ends", "alone");
  refuses(kBase + "latency: {from: 0us, to: 1us, points: 3, scale: log}\n", 3, "begin at 0", "");
  refuses(kBase + "latency: {from: 0us, to: 1us, points: 1000000000}\n", 3, "points", "100000");
  refuses(kBase + "bandwidth: {from: 1GB/s, to: 2GB/s, times: 1}\n", 3, "times", "more than 1");
  refuses(kBase + "latency: {from: 0us, to: 1us, step: 0us}\n", 3, "step", "more than 0");
  refuses(kBase + "latency: {from: 0us, to: 1us, times: 2}\n", 3, "begin at 0", "");
  refuses(kBase + "bandwidth: {from: 2GB/s, to: 1GB/s, times: 2}\n", 3, "exchange", "");
  refuses(kBase + "nodes: {from: 2, to: 9, times: 1.5}\n", 3, "not whole", "list the values");
  refuses(kBase + "nodes: {from: 2, until: 9, times: 2}\n", 3, "until", "from");
  refuses(kBase + "topology: {from: ps, to: ring, step: 1}\n", 3, "no range", "topologies");
  refuses(kBase + "partitions: {from: plan, to: 4, step: 1}\n", 3, "number", "");
  refuses(kBase + "latency: {from: 0us, to: 1s, step: 1ps}\n", 3, "more than 100000 values", "");
}

TEST_CASE_METHOD(SweepFixture, "a range of points is even in values or in logarithms") {
  const auto values = [&](const std::string& text, Axis axis) {
    std::vector<double> numbers;
    for (const AxisValue& value : read_sweep(spec(kBase + text)).values[axis]) {
      numbers.push_back(*value.number);
    }
    return numbers;
  };
  CHECK(values("bandwidth: {from: 1GB/s, to: 4GB/s, points: 4}\n", kBandwidth) ==
        std::vector<double>{1e9, 2e9, 3e9, 4e9});
  CHECK(values("bandwidth: {from: 1GB/s, to: 10GB/s, points: 3, scale: log}\n", kBandwidth) ==
        std::vector<double>{1e9, 3.16228e9, 1e10});
  // Whole numbers, each only once.
  CHECK(values("nodes: {from: 2, to: 5, points: 6, scale: log}\n", kNodes) ==
        std::vector<double>{2, 3, 4, 5});
}

TEST_CASE_METHOD(SweepFixture, "axes of parameters complete algorithms and schedules") {
  const SweepSpec read = read_sweep(
      spec("model: two.yaml\nalgorithm: [dgc, 'dgc(rho=0.5, momentum=0.9)']\nratio: [0.01, 0.1]\n"
           "schedule: 'local(steps=5)'\nsteps: [10, 20]\nfragments: 2\n"));
  CHECK(algorithm(read, point(read, 0)) == "dgc(rho=0.01)");
  const std::string merged = algorithm(read, point(read, read.points() - 1));
  CHECK_THAT(merged, Contains("rho=0.1") && Contains("momentum=0.9") && !Contains("0.5"));
  CHECK(casync::Schedule::parse(schedule(read, point(read, 1))) ==
        casync::Schedule::parse("local(steps=20, fragments=2)"));
  refuses(kBase + "rank: [2, 4]\n", 3, "rank '2'", "onebit");
  refuses(kBase + "ratio: 2\n", 3, "ratio", "share");
  refuses(kBase + "steps: 10\n", 3, "steps '10'", "ddp");
  refuses(kBase + "schedule: fsdp\nreshard: maybe\n", 4, "reshard 'maybe'", "true");
}

TEST_CASE_METHOD(SweepFixture, "a parameter axis is the schedule that says it") {
  const std::string ring = kBase + "topology: ring\nnodes: 2\nplan: none\n";
  const auto times = [&](const std::string& text) {
    const SweepSpec read = read_sweep(spec(ring + text));
    std::vector<casync::Picoseconds> iterations;
    for (const SweepRow& row : Sweep(read, {}, kNoPlans).run(1, {})) {
      iterations.push_back(row.iteration);
    }
    return iterations;
  };
  CHECK(times("schedule: local\nsteps: [10, 20]\n") ==
        times("schedule: ['local(steps=10)', 'local(steps=20)']\n"));
}

TEST_CASE_METHOD(SweepFixture, "axes of machines are the cluster file that says it") {
  const std::string ring = kBase + "topology: ring\nnodes: 4\nplan: none\n";
  const std::string gpus = "gpu_link: {bandwidth: 10GB/s, overhead: 1us}\n";
  const auto times = [&](const std::string& text, const std::string& cluster) {
    folder.file("cluster.yaml", cluster);
    const SweepSpec read = read_sweep(spec(ring + "cluster: cluster.yaml\n" + text));
    std::vector<casync::Picoseconds> iterations;
    for (const SweepRow& row : Sweep(read, {}, kNoPlans).run(1, {})) {
      iterations.push_back(row.iteration);
    }
    return iterations;
  };
  const auto same = [&](const std::string& axis, const std::string& keys,
                        const std::string& both = "nodes: 4\n") {
    CAPTURE(axis);
    const auto by_axis = times(axis, both);
    CHECK(by_axis == times("", both + keys));
    CHECK(by_axis != times("", both));
  };
  same("gpus_per_node: 4\n", "gpus_per_node: 4\n", "nodes: 4\n" + gpus);
  same("cards: 2\n", "cards: 2\n", "nodes: 4\nnodes_per_host: 2\nhost_link: {bandwidth: 10GB/s}\n");
  same("hosts_per_rack: 2\noversubscription: 4\n", "rack: {hosts: 2, oversubscription: 4}\n");
  same("stragglers: 1\n", "compute_speed: {3: 0.5}\n");
  same("stragglers: 2\nstraggler_speed: 0.25\n", "compute_speed: {2: 0.25, 3: 0.25}\n");
  same("slow_link: 0.25\n", "slow_links:\n  - {between: [0, 1], bandwidth: 250MB/s}\n");
  // The factor applies to the bandwidth of the spec, too.
  CHECK(times("slow_link: 0.25\nbandwidth: 100MB/s\n", "nodes: 4\n") ==
        times("bandwidth: 100MB/s\n",
              "nodes: 4\nslow_links:\n  - {between: [0, 1], bandwidth: 25MB/s}\n"));
}

TEST_CASE_METHOD(SweepFixture, "machines are an axis, each as a sweep of it alone") {
  const std::string base =
      "model: two.yaml\ntopology: allreduce\nplan: none\nalgorithm: fp16\nnodes: 16\n";
  const auto rows = [&](const std::string& machines) {
    std::istringstream lines(csv(base + "machine: " + machines + "\n"));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(",16,none,") != std::string::npos) found.push_back(line);
    }
    return found;
  };
  const auto both = rows("[p5.48xlarge, p4d.24xlarge]");
  REQUIRE(both.size() == 2);
  CHECK(both[0] != both[1]);
  CHECK(both[0] == rows("p5.48xlarge").at(0));
  CHECK(both[1] == rows("p4d.24xlarge").at(0));
  refuses(base + "machine: p5.48xlarg\n", 6, "neither a file nor a shipped machine", "p5.48xlarge");
  refuses(base + "machine: p5.48xlarge\ngpus_per_node: 4\n", 7, "every GPU is a node",
          "leave the axis out");
}

TEST_CASE_METHOD(SweepFixture, "cards are an axis, for each machine its own number of rings") {
  const std::string base = "model: two.yaml\nalgorithm: fp16\nnodes: 16\nmachine: p5.48xlarge\n";
  const auto times = [&](const std::string& axes) {
    std::vector<casync::Picoseconds> iterations;
    for (const SweepRow& row : Sweep(read_sweep(spec(base + axes)), {}, kNoPlans).run(1, {})) {
      iterations.push_back(row.iteration);
    }
    return iterations;
  };
  for (const std::string plan :
       {"plan: all\ntopology: ring\n", "plan: none\ntopology: allreduce\n"}) {
    INFO(plan);
    const auto all = times(plan + "cards: [1, 16, 32]\n");
    REQUIRE(all.size() == 3);
    CHECK(all[0] == times(plan + "cards: 1\n").at(0));
    CHECK(all[0] != all[1]);
    // 16 of the 32 cards, each of 100 Gbit/s: 16 · 12.5 GB/s · 0.9.
    CHECK(all[1] == times(plan + "bandwidth: 180GB/s\n").at(0));
    CHECK(all[2] == times(plan).at(0));  // the data sheet's number
  }
  folder.file("lone.yaml",
              "schema: hipress.machine/1\nname: lone\ngpus: 1\n"
              "gpu: {name: G, generation: ada, memory: 24GB, memory_bandwidth: 1TB/s,\n"
              "      tflops: {fp32: 80}, kernels: a100-100g}\n"
              "fabric: {kind: none}\ncpu: {vendor: amd, cores: 8}\n"
              "sources: {gpu: made up, fabric: made up, cpu: made up}\n");
  refuses("model: two.yaml\nplan: none\nnodes: 1\nmachine: lone.yaml\ncards: 2\n", 5,
          "machine lone.yaml has no network", "leave the axis out");
}

TEST_CASE_METHOD(SweepFixture, "without the axis, nodes are as many as the cluster says") {
  folder.file("three.yaml", "nodes: 3\n");
  const std::string ring = kBase + "topology: ring\nplan: none\ncluster: three.yaml\n";
  CHECK(csv(ring) == csv(ring + "nodes: 3\n"));
}

TEST_CASE_METHOD(SweepFixture, "axes of machines that contradict the cluster are refused") {
  const std::string four = kBase + "nodes: 4\nplan: none\n";
  refuses(four + "gpus_per_node: 8\n", 5, "no link joins a node's GPUs", "gpu_link");
  refuses(four + "oversubscription: 4\n", 5, "no racks", "hosts_per_rack");
  refuses(four + "oversubscription: 0.5\n", 5, "oversubscription", "1 is none");
  refuses(four + "cards: 2\n", 5, "a host has 1", "Give at most that many");
  refuses(four + "stragglers: 5\n", 5, "there are only 4 nodes", "no more");
  refuses(four + "slow_link: 2\n", 5, "slow_link", "as fast as the others");
  refuses(four + "slow_link: 0.5\nhosts_per_rack: 2\n", 5, "racks", "leave one");
  refuses(kBase + "nodes: 1\nplan: none\nslow_link: 0.5\n", 5, "one host", "more nodes");
}

TEST_CASE_METHOD(SweepFixture, "spreadsheets run no text of a sweep") {
  const std::string model = "{name: m, gradients: [{name: g, elements: 320, ready: 1ms}]}\n";
  folder.file("=HYPERLINK(1,2).yaml", model);
  folder.file("'-1.yaml", model);
  folder.file("a;=b.yaml", model);
  const SweepSpec read = read_sweep(spec(
      "model: ['=HYPERLINK(1,2).yaml', '''-1.yaml', a;=b.yaml]\nprofile: cheap.yaml\nnodes: 1\n"
      "plan: none\n"));
  Sweep sweep(read, {}, kNoPlans);
  std::ostringstream out;
  write_sweep(out, read, {}, sweep.run(1, {}), {"model a,=b;c, \"=d\""});
  const std::string csv = out.str();
  CHECK_THAT(csv, StartsWith("# model a\\x2c=b;c\\x2c \"=d\"\n"));
  for (const char* cell :
       {"\n\"'=HYPERLINK(1,2).yaml\",ps,1,", "\n''-1.yaml,ps,1,", "\n\"a;=b.yaml\",ps,1,"}) {
    CHECK_THAT(csv, Contains(cell));
  }
}

TEST_CASE_METHOD(SweepFixture, "absurd sizes are refused before anything is simulated") {
  refuses(
      kBase + "latency: {from: 1us, to: 9999us, step: 1us}\nnodes: {from: 1, to: 101, step: 1}\n",
      0, "101 nodes × 9999 latency make 1.01e+06 points", "shorten an axis");
  refuses(kBase + "nodes: 100000\nplan: none\n", 3, "tasks", "fewer nodes");
  // A library's all-reduce is one task per node, and a Join, whatever K is. Each of N nodes has
  // three tasks of computation, and there are two gradients.
  folder.file("unlike.yaml", "nodes: 100000\ncompute_speed: {3: 0.5}\n");
  const SweepSpec read = read_sweep(
      spec(kBase + "nodes: 100000\nplan: none\ntopology: allreduce\ncluster: unlike.yaml\n"));
  CHECK(Sweep(read, {}, kNoPlans).size().tasks == 3 * 100'000 + 2 * 100'001);
}

TEST_CASE_METHOD(SweepFixture, "a sweep for which there is no room is refused with a remedy") {
  const std::string raw = kBase + "topology: ring\nplan: none\n";
  const auto tasks_of = [&](const std::string& axes) {
    const SweepSpec read = read_sweep(spec(raw + axes));
    const Sweep sweep(read, {}, kNoPlans);
    REQUIRE(sweep.size().simulations == 1);
    return sweep.size().tasks;
  };
  const double two = tasks_of("nodes: 2\n"), three = tasks_of("nodes: 3\n");
  REQUIRE(two < three);
  const auto needs = [&](const std::string& axes, unsigned jobs, double bytes,
                         const std::string& said) {
    CAPTURE(axes, jobs);
    const SweepSpec read = read_sweep(spec(raw + axes));
    const Sweep sweep(read, {}, kNoPlans);
    const auto enough = static_cast<std::int64_t>(std::ceil(bytes));
    CHECK_NOTHROW(sweep.require_room(jobs, enough));
    CHECK_THAT(complaint([&] { sweep.require_room(jobs, enough - 1); }),
               StartsWith(folder.path("spec.yaml") + ": ") && Contains(said));
  };
  const auto alone = [](double tasks) {
    return bytes_of_graph(tasks) + bytes_of_simulation(tasks);
  };
  needs("nodes: 2\n", 8, alone(two), "one simulation at a time needs about");
  // One job needs the larger of two graphs, two jobs need both.
  needs("nodes: [2, 3]\n", 1, alone(three), "the largest graph, of point model=two.yaml");
  needs("nodes: [2, 3]\n", 2, alone(two) + alone(three), "give fewer `jobs`, fewer nodes or");
  // Two simulations share one graph.
  const std::string machines = "nodes: 2\nlatency: [1us, 2us]\n";
  needs(machines, 1, alone(two), "give fewer nodes or partitions");
  needs(machines, 8, alone(two) + bytes_of_simulation(two), "2 simulations at a time need about");
  // An empty shard simulates nothing.
  const SweepSpec read = read_sweep(spec(raw));
  CHECK_NOTHROW(Sweep(read, {.index = 1, .count = 200}, kNoPlans).require_room(4, 0));
}

TEST_CASE_METHOD(SweepFixture, "a plan that the topology cannot send is refused at its line") {
  refuses(kBase + "topology: allreduce\nplan: all\n", 4, "compressed", "take ps or ring");
  refuses(kBase + "topology: allreduce\n", 3, "compressed", "take ps or ring");
}

TEST_CASE("a shard is I/M") {
  CHECK(parse_shard("3/8").index == 3);
  CHECK(parse_shard("3/8").count == 8);
  for (const char* text : {"", "3", "0/8", "9/8", "3/", "/8", "a/b", "1/2/3", "-1/2"}) {
    CAPTURE(text);
    CHECK_THAT(complaint([&] { parse_shard(text); }), Contains("such as 3/8"));
  }
}

}  // namespace
}  // namespace hipress::sweep
