#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

// Tests of hipress-sim's command line. They are here because they need plans and the planner's
// fixtures; tests of the engine are in tests/sim/.

/// Two gradients on a link of 8 Gbit/s (1 ns a byte), with 10 us per message, 5 us on the wire and
/// codec steps of 100 us.
class SimFixture : public Workplace {
 public:
  SimFixture() {
    write("model.yaml",
          "name: two\nsource: test\nbatch: 1\nunit: images\ndtype: float32\nforward: "
          "1ms\ngradients:\n"
          "  - {name: late, elements: 64000, ready: 3ms}\n  - {name: early, elements: 320, ready: "
          "2ms}\n");
    write("cheap.yaml",
          "schema: hipress.profile/1\nname: cheap\nsource: test\n"
          "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s}\n"
          "kernels:\n  merge: {pieces: []}\n  codecs:\n    onebit:\n"
          "      encode: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
          "      decode: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
          "      decode_add: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
          "links: {overhead: 10us, bandwidth: 8Gbps, latency: 5us}\n...\n");
  }

  void refuses(const std::string& arguments, const std::string& culprit,
               const std::string& remedy) const {
    CAPTURE(arguments);
    const std::size_t before = files();
    const ToolRun done = run("hipress-sim --trace trace.json " + arguments);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK_THAT(done.err, Contains(culprit) && Contains(remedy));
    CHECK(files() == before);
  }
};

const std::string kTwo = "--input model.yaml --profile cheap.yaml --nnodes 2 --topology RING ";

TEST_CASE_METHOD(SimFixture,
                 "option --json has the documented keys with the times of a hand-derived ring",
                 "[tool]") {
  const ToolRun done = run("hipress-sim --json --fold never --plan none " + kTwo);
  REQUIRE(done.status == 0);
  CHECK(done.err.empty());
  const auto report = nlohmann::json::parse(done.out);
  CHECK(report.size() == 41);
  // On this cluster, tasks do not slow each other down.
  const nlohmann::json& slowdown = report.at("slowdown");
  CHECK(
      slowdown ==
      nlohmann::json(
          {{"node", 0}, {"by_codecs_s", 0.0}, {"by_transfers_s", 0.0}, {"by_computation_s", 0.0}}));
  // 'early' is synchronised long before 'late' is ready after 1 + 3 ms. Then 2(N−1) = 2 steps send
  // half of 'late', 128000 B, in 10 us + 128 us + 5 us each. Merges are free. Total: 4.286 ms.
  CHECK(report.at("iteration_s").get<double>() == Approx(4.286e-3).epsilon(1e-12));
  CHECK(report.at("compute_s").get<double>() == Approx(4e-3).epsilon(1e-12));
  CHECK(report.at("synchronisation_s").get<double>() == Approx(3.286e-3).epsilon(1e-12));
  CHECK(report.at("exposed_communication_s").get<double>() == Approx(0.286e-3).epsilon(1e-12));
  // Each node sends half of each gradient twice: 256000 + 1280 bytes.
  CHECK(report.at("bytes_sent_per_node") == nlohmann::json({257280, 257280}));
  CHECK(report.at("folding") == "none");
  CHECK(report.at("orbits") == 2);
  CHECK(report.at("simulation_s").get<double>() > 0);
  CHECK(report.at("tasks_per_s").get<double>() > 0);
  // Each of 2 nodes has a Forward and 2 Backwards, each partition 2 sends, 2 receives and a merge.
  CHECK(report.at("tasks") == 2 * 3 + 2 * 2 * 5);
  CHECK(report.at("schedule") == "ddp");
  CHECK(report.at("steps_per_period") == 1);
  CHECK(report.at("utilization").get<double>() == Approx(4 / 4.286));
  CHECK(report.at("bytes_per_step") == 257280);
  CHECK(report.at("bytes_per_day").get<double>() == Approx(257280.0 * 86400 / 4.286e-3));
  // All bytes are sent within a window of the 4 ms that a step computes.
  CHECK(report.at("peak_bits_per_s").get<double>() == Approx(8 * 257280.0 / 4e-3));
}

TEST_CASE_METHOD(SimFixture,
                 "where all nodes do the same, one is simulated, and the report says so",
                 "[tool]") {
  const auto report_of = [&](const std::string& arguments) {
    const ToolRun done = run("hipress-sim --json " + arguments);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out);
  };
  const nlohmann::json whole = report_of("--fold never --plan none " + kTwo);
  const nlohmann::json folded = report_of("--plan none " + kTwo);
  CHECK(folded.at("folding") == "exact");
  CHECK(folded.at("orbits") == 1);
  CHECK(2 * folded.at("tasks").get<int>() == whole.at("tasks"));
  for (const char* same : {"iteration_s", "compute_s", "bytes_sent_per_node", "links"}) {
    CHECK(folded.at(same) == whole.at(same));
  }
  CHECK_THAT(run("hipress-sim --plan none " + kTwo).out, Contains("1, which stands for all 2"));

  // On 3 nodes, 320 elements are slices of 128, 128 and 64.
  const std::string three = "--input model.yaml --profile cheap.yaml --nnodes 3 --plan none ";
  CHECK(report_of(three).at("folding") == "none");
  CHECK_THAT(run("hipress-sim " + three).out, Contains("slices of gradient 'early' are not equal"));
  const nlohmann::json bounded = report_of(three + "--fold always");
  CHECK(bounded.at("folding") == "bounded");
  const nlohmann::json& bounds = bounded.at("folding_bounds");
  CHECK(bounds.at("shortest_slices_s") < bounded.at("iteration_s"));
  CHECK(bounds.at("longest_slices_s") == bounded.at("iteration_s"));
}

TEST_CASE_METHOD(SimFixture, "options change the plan, and unmeasured costs are announced",
                 "[tool]") {
  const auto report_of = [&](const std::string& options) {
    const ToolRun done = run("hipress-sim --json " + kTwo + options);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out);
  };
  // The group has 64320 elements, a multiple of 64. When 'late' is ready, 2 steps send half of it,
  // 128640 B, in 10 + 128.64 + 5 us each.
  const nlohmann::json bulk = report_of("--plan none --bulk-threshold 1MiB");
  CHECK(bulk.at("iteration_s").get<double>() == Approx(4e-3 + 2 * 143.64e-6).epsilon(1e-12));
  CHECK(bulk.at("steady").is_null());
  // 'early' is synchronised before 'late' is ready, so pipelining makes no difference.
  CHECK(report_of("--plan none --no-pipelining").at("iteration_s") ==
        report_of("--plan none").at("iteration_s"));
  const nlohmann::json steady = report_of("--plan none --steady=4");
  CHECK(steady.at("steady").at("periods_s").size() == 3);
  CHECK(steady.at("steady").at("settled") == true);
  CHECK(steady.at("iteration_s").get<double>() <= 4.286e-3);
  CHECK(report_of("--plan none --no-selection").at("critical_path_share").at("Encode") > 0);

  // Without a measurement, an all-reduce is an ideal ring: twice 10 + 128 + 5 us.
  const ToolRun raw = run("hipress-sim --json --plan none --raw-allreduce " + kTwo);
  REQUIRE(raw.status == 0);
  CHECK_THAT(raw.err, Contains("all-reduce of 2 nodes was not measured"));
  CHECK(nlohmann::json::parse(raw.out).at("iteration_s").get<double>() ==
        Approx(4.286e-3).epsilon(1e-12));
}

TEST_CASE_METHOD(SimFixture, "options that make no sense are refused before anything is written",
                 "[tool]") {
  refuses(kTwo + "--plan all --bulk-threshold 64", "--bulk-threshold", "64KiB");
  refuses(kTwo + "--plan all --bulk-wait 1ms", "--bulk-wait", "needs --bulk-threshold");
  refuses(kTwo + "--plan all --steady=1", "--steady", "2");
  refuses("--input model.yaml --profile cheap.yaml --nnodes 2 --topology ALLREDUCE --plan all",
          "gradient 'late' is compressed with onebit", "take ps or ring");
}

TEST_CASE_METHOD(SimFixture, "the critical path is a chain from the start to the end", "[tool]") {
  const ToolRun done = run("hipress-sim --json --plan all " + kTwo);
  REQUIRE(done.status == 0);
  const auto report = nlohmann::json::parse(done.out);
  const auto& path = report.at("critical_path");
  REQUIRE(path.size() > 2);
  CHECK(path.front().at("kind") == "Forward");
  CHECK(path.front().at("gradient").is_null());
  CHECK(path.front().at("start_s") == 0);
  CHECK(path.back().at("kind") == "Decode");
  CHECK(path.back().at("gradient") == "late");
  CHECK(path.back().at("end_s") == report.at("iteration_s"));
  for (std::size_t i = 1; i < path.size(); ++i) {
    const bool arrival = path[i].at("kind") == "Recv";
    const double gap = path[i].at("start_s").get<double>() - path[i - 1].at("end_s").get<double>();
    CHECK(gap == Approx(arrival ? 5e-6 : 0).margin(1e-15));
  }
}

TEST_CASE_METHOD(SimFixture, "the report shows times, bytes, critical path and speed", "[tool]") {
  const ToolRun done = run("hipress-sim --plan none " + kTwo);
  CHECK(done.status == 0);
  CHECK_THAT(done.out,
             Contains("2 gradients, ring, N = 2") &&
                 Contains("profile cheap (of own making), 2 nodes, links 8 Gbit/s + 5us latency + "
                          "10us overhead; compute 4ms (forward 1ms); network fair") &&
                 !Contains("no --profile was given"));
  CHECK_THAT(done.out, Contains("iteration               4.286ms") &&
                           Contains("exposed communication   286us"));
  CHECK_THAT(done.out,
             Contains("critical path") && Contains("Backward 3ms") && Contains("on the wire 10us"));
}

TEST_CASE_METHOD(SimFixture, "predictions are of a whole step, whatever its micro-steps",
                 "[tool]") {
  // Three micro-steps of 1 ms forward and 3 ms backward, and 2 ms of the optimizer, are 14 ms of
  // computation. The last backward begins after 11 ms, so times are those of a forward of 11 ms.
  const std::string gradients =
      "gradients:\n- {name: late, elements: 64000, ready: 3ms}\n"
      "- {name: early, elements: 320, ready: 2ms}\n";
  write("steps.yaml", "name: two\nforward: 1ms\noptimizer: 2ms\nmicro_steps: 3\n" + gradients);
  write("lump.yaml", "name: two\nforward: 11ms\n" + gradients);
  const std::string rest = " --profile cheap.yaml --nnodes 2 --topology RING";
  const auto report_of = [&](const std::string& tool, const std::string& model) {
    const ToolRun done = run(tool + " --json --input " + model + rest);
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    auto report = nlohmann::json::parse(done.out);
    for (const char* key : {"machines", "simulation_s", "tasks_per_s", "search_s"}) {
      report.erase(key);
    }
    return report;
  };
  for (const char* plan : {"none", "all", "secopa"}) {
    const std::string tool = std::string("hipress-sim --plan ") + plan;
    CHECK(report_of(tool, "steps.yaml") == report_of(tool, "lump.yaml"));
  }
  const auto simulated = report_of("hipress-sim --plan none", "steps.yaml");
  CHECK(simulated.at("compute_s").get<double>() == Approx(14e-3));
  CHECK(simulated.at("iteration_s").get<double>() == Approx(14.286e-3));
  CHECK(simulated.at("synchronisation_s").get<double>() == Approx(3.286e-3));
  const std::string plan = "hipress-plan --algorithm onebit --evaluations 200 --output plan.yaml";
  const auto planned = report_of(plan, "steps.yaml");
  CHECK(planned.at("baselines") == report_of(plan, "lump.yaml").at("baselines"));
  CHECK(planned.at("baselines").at("none").get<double>() == Approx(14.286e-3));
  CHECK(planned.at("lower_bound_s").get<double>() >= 14e-3);
  const ToolRun shown = run("hipress-sim --plan none --input steps.yaml" + rest);
  CHECK_THAT(shown.out, Contains("compute 14ms (3 micro-steps of 4ms; optimizer 2ms)"));
}

TEST_CASE_METHOD(SimFixture, "the JSON says where the time goes and how busy everything is",
                 "[tool]") {
  const ToolRun done = run("hipress-sim --json --plan none " + kTwo);
  REQUIRE(done.status == 0);
  const auto report = nlohmann::json::parse(done.out);
  // 4.286 ms are 1 ms of forward, 3 ms of backward, two sends of 138 us, and twice 5 us of wire.
  const auto& share = report.at("critical_path_share");
  CHECK(share.at("Forward").get<double>() == Approx(1 / 4.286));
  CHECK(share.at("Backward").get<double>() == Approx(3 / 4.286));
  CHECK(share.at("Send").get<double>() == Approx(0.276 / 4.286));
  CHECK(share.at("wire").get<double>() == Approx(0.01 / 4.286));
  CHECK(report.at("exposed_communication_share").at("Send").get<double>() == Approx(276.0 / 286));
  // Each node sends four messages with 10 us each, and 257280 B in total, which take 257.28 us.
  const auto& nodes = report.at("utilisation").at("nodes");
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[1].at("compute").get<double>() == Approx(4 / 4.286));
  CHECK(nodes[1].at("codec") == 0);
  CHECK(nodes[1].at("egress").get<double>() == Approx(0.29728 / 4.286));
  CHECK(report.at("utilisation").at("hosts").empty());
  const auto& links = report.at("links");
  REQUIRE(links.size() == 4);
  CHECK(links[3].at("direction") == "ingress");
  CHECK(links[3].at("bytes") == 257280);
  CHECK(links[3].at("messages") == 4);
  CHECK(links[3].at("busy").get<double>() == Approx(0.29728 / 4.286));
  CHECK(report.at("sensitivity").is_null());
}

TEST_CASE_METHOD(SimFixture, "links of hosts and racks, and between GPUs, are reported", "[tool]") {
  write(
      "hosts.yaml",
      "nodes_per_host: 2\nhost_link: {bandwidth: 8GB/s}\nrack: {hosts: 1, oversubscription: 2}\n");
  const std::string hosts =
      "--input model.yaml --profile cheap.yaml --nnodes 4 --topology RING --cluster hosts.yaml ";
  const auto report = nlohmann::json::parse(run("hipress-sim --json --plan none " + hosts).out);
  const auto& links = report.at("links");
  REQUIRE(links.size() == 2 * 4 + 2 * 2 + 2 * 2);
  CHECK(links[8].at("host") == 0);
  CHECK(links[8].at("direction") == "nic out");
  CHECK(links[15].at("rack") == 1);
  CHECK(links[15].at("direction") == "rack down");
  // A rack has one host, so the same bytes arrive on the links of both.
  CHECK(links[15].at("bytes") == links[11].at("bytes"));
  CHECK(links[15].at("bytes").get<std::int64_t>() > 0);
  CHECK_THAT(run("hipress-sim --plan none " + hosts).out,
             Contains("NICs out") && Contains("racks up") &&
                 Contains("all 4, since nodes differ in which others share their host or rack"));
  refuses("--network port --plan none " + hosts, "network port", "take network fair");

  const ToolRun example =
      run("hipress-sim --input bert_large --plan none --topology PS --json --cluster " +
          std::string(HIPRESS_SOURCE_DIR "/examples/cluster_2racks.yaml"));
  REQUIRE(example.status == 0);
  CHECK_THAT(example.err,
             Contains("cluster_2racks.yaml:") && Contains("link replaces what profile sosp21 has"));
  const auto gpus = nlohmann::json::parse(example.out);
  CHECK(gpus.at("utilisation").at("nodes")[3].at("local").get<double>() > 0);
  CHECK(gpus.at("links").size() == 2 * 16 + 2 * 2);
}

TEST_CASE_METHOD(SimFixture, "what computation loses on its host's cores is reported", "[tool]") {
  // Two ranks with one thread each compute on a host with one core, so 4 ms take 8 ms. Encoding at
  // the same time takes additional time.
  write("threads.yaml",
        "name: two\nthreads: 1\nforward: 1ms\ngradients:\n"
        "  - {name: late, elements: 64000, ready: 3ms}\n"
        "  - {name: early, elements: 320, ready: 2ms}\n");
  write("core.yaml", "nodes_per_host: 2\ncores_per_host: 1\n");
  const std::string asked =
      "hipress-sim --input threads.yaml --profile cheap.yaml --nnodes 2 --topology RING --plan all "
      "--algorithm onebit --cluster core.yaml --trace trace.json ";
  const ToolRun text = run(asked);
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, Contains("of it slowed") && Contains(" by codecs") &&
                           Contains(" by other ranks' computation"));
  const auto report = nlohmann::json::parse(run(asked + "--json").out);
  const nlohmann::json& slowdown = report.at("slowdown");
  CHECK(slowdown.at("by_codecs_s") > 0);
  CHECK(slowdown.at("by_transfers_s") == 0);
  CHECK(slowdown.at("by_computation_s") >= 3e-3);
  const double compute_s = report.at("compute_s").get<double>();
  CHECK(compute_s == Approx(4e-3 + slowdown.at("by_codecs_s").get<double>() +
                            slowdown.at("by_computation_s").get<double>())
                         .epsilon(1e-9));
  double on_path_s = 0;
  for (const nlohmann::json& step : report.at("critical_path")) {
    on_path_s += step.at("slowed_s").get<double>();
  }
  CHECK(on_path_s > 0);
  CHECK_THAT(read("trace.json"), Contains("\"slowed_us\":"));
}

TEST_CASE_METHOD(SimFixture, "sites of a cluster file average within themselves in every step",
                 "[tool]") {
  const ToolRun example = run(
      "hipress-sim --input vgg19 --plan none --schedule 'local(steps=100, fragments=4, overlap=1)' "
      "--cluster " HIPRESS_SOURCE_DIR "/examples/cluster_sites.yaml");
  REQUIRE(example.status == 0);
  CHECK_THAT(example.out, Contains("4 sites × 8 nodes × 8 GPUs, links 1 Gbit/s + 20ms latency") &&
                              Contains("within sites 100 Gbit/s + 5us latency") &&
                              Contains("1 pair of their own down to 500 Mbit/s") &&
                              Contains("since some links are slower than others"));

  write("sites.yaml",
        "nodes: 16\nlink: {bandwidth: 10Gbps, latency: 5us, overhead: 0us}\n"
        "sites: {nodes: 4, link: {bandwidth: 1Gbps, latency: 10ms}}\n");
  const std::string command =
      "hipress-sim --json --input vgg19 --plan none --topology ring --cluster sites.yaml "
      "--schedule 'local(steps=10)' --fold ";
  const ToolRun folded = run(command + "always"), whole = run(command + "never");
  REQUIRE(folded.status == 0);
  const auto one = nlohmann::json::parse(folded.out), all = nlohmann::json::parse(whole.out);
  CHECK(one.at("folding") != "none");
  CHECK(all.at("folding") == "none");
  CHECK(one.at("iteration_s").get<double>() ==
        Approx(all.at("iteration_s").get<double>()).epsilon(1e-3));
  // In 10 steps, 143.7 M values are reduced and gathered ten times, and gathered once more.
  const double bytes = 4 * 143667240.0;
  const double local_s = 21 * 0.75 * bytes / 1.25e9;
  const auto use = one.at("utilisation").at("nodes")[0].at("local").get<double>();
  CHECK(use * 10 * one.at("iteration_s").get<double>() == Approx(local_s).epsilon(0.02));

  const ToolRun wrong = run(command + "auto --nnodes 16");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, Contains("sites.yaml:1") && Contains("counts sites here; leave it out"));
}

TEST_CASE_METHOD(SimFixture, "option --sensitivity shows what 10 % more of something brings",
                 "[tool]") {
  const ToolRun done = run("hipress-sim --json --sensitivity --plan none " + kTwo);
  REQUIRE(done.status == 0);
  const auto rows = nlohmann::json::parse(done.out).at("sensitivity");
  // Communication of 2·(10 us + 128 us + 5 us) is exposed. Each row improves one quantity by 10 %.
  CHECK(rows.at("bandwidth").at("change_s").get<double>() == Approx(-256e-6 / 11).epsilon(1e-6));
  CHECK(rows.at("latency").at("change_s").get<double>() == Approx(-1e-6).epsilon(1e-6));
  CHECK(rows.at("overhead").at("change_s").get<double>() == Approx(-2e-6).epsilon(1e-6));
  CHECK(rows.at("compute").at("change_s").get<double>() == Approx(-4e-3 / 11).epsilon(1e-6));
  CHECK(rows.at("encode").at("change_s") == 0);
  CHECK(rows.at("compute").at("iteration_s").get<double>() ==
        Approx(4.286e-3 - 4e-3 / 11).epsilon(1e-6));
  CHECK_THAT(run("hipress-sim --sensitivity --plan none " + kTwo).out,
             Contains("if one thing were 10 % better") && Contains("-8.48 %"));
}

TEST_CASE_METHOD(SimFixture, "the report names what the critical path waits for and what is busy",
                 "[tool]") {
  const ToolRun done = run("hipress-sim --plan none " + kTwo);
  CHECK_THAT(done.out, Contains("Backward 3ms (70.0 %)") && Contains("Send 276us (6.4 %)") &&
                           Contains("its exposed part        Send 276us (96.5 %)"));
  CHECK_THAT(done.out, Contains("compute 93.3 %, codec 0.0 %, egress 6.9 %, ingress 6.9 %"));
  CHECK_THAT(done.out, Contains("critical path by kind and gradient:") && Contains("early … late"));
}

TEST_CASE_METHOD(SimFixture, "a parameter that changes nothing is warned of, on stderr alone",
                 "[tool]") {
  const ToolRun done = run("hipress-sim --plan none --algorithm onebit " + kTwo);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("warning: --algorithm has no effect: plan 'none'"));
  CHECK(done.out.find("warning") == std::string::npos);
  write("cluster.yaml", "link: {bandwidth: 1GB/s}\n");
  const ToolRun alone =
      run("hipress-sim --input model.yaml --plan none --nnodes 1 --network port --cluster "
          "cluster.yaml");
  CHECK_THAT(alone.err,
             Contains("--network has no effect: a job of one node") &&
                 Contains("cluster.yaml: link.bandwidth has no effect: a job of one node"));
}

TEST_CASE_METHOD(SimFixture, "replicas of jitter give percentiles, the same for any jobs",
                 "[tool]") {
  const std::string command =
      "hipress-sim --json --plan none --jitter lognormal:0.2 --seed 3 --replicas 30 " + kTwo;
  const auto of_jobs = [&](const std::string& jobs) {
    const ToolRun done = run(command + jobs);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("replicas");
  };
  const auto replicas = of_jobs("--jobs 1");
  CHECK(replicas == of_jobs("--jobs 4"));
  CHECK(replicas.at("count") == 30);
  CHECK(replicas.at("p10_s") < replicas.at("p50_s"));
  CHECK(replicas.at("p50_s") < replicas.at("p90_s"));
  CHECK(replicas.at("p90_s") <= replicas.at("p99_s"));
  CHECK_THAT(run("hipress-sim --plan none --jitter uniform:0.1 --replicas 5 " + kTwo).out,
             Contains("over 5 replicas"));
}

TEST_CASE_METHOD(SimFixture, "impossible costs and jitter are refused by file and line", "[tool]") {
  const auto with_cluster = [&](const std::string& line) {
    write("bad.yaml", "name: bad\n" + line + "\n");
    return "--plan none --cluster bad.yaml " + kTwo;
  };
  refuses(with_cluster("link: {bandwidth: 0Gbps}"), "bad.yaml:2", "bandwidth");
  refuses(with_cluster("link: {latency: -1us}"), "bad.yaml:2", "latency");
  refuses(with_cluster("link: {core_s_per_byte: .nan}"), "bad.yaml:2", "core_s_per_byte");
  refuses(with_cluster("overlap: {compute_codec: 0.5}"), "bad.yaml:2", "must be 1");
  refuses(with_cluster("overlap: {codec_codec: 2}"), "bad.yaml:2", "codec_codec");
  refuses(with_cluster("overlap: {classes: {}}"), "bad.yaml:2", "has no 'codec_beside_transfer'");
  refuses("--plan none --replicas 3 " + kTwo, "--replicas", "--jitter");
  refuses("--plan none --jitter gauss:1 " + kTwo, "'gauss:1'", "lognormal:S");
  refuses("--plan none --jitter uniform:2 " + kTwo, "uniform:2", "0 to 1");
  refuses("--plan none --transfer-order last " + kTwo, "'last'", "ready, need");
}

/// A cluster of two nodes. Kernels of class norm and codecs take 3 times as long if they run
/// together; all other classes slow nothing.
constexpr const char* kMatrix =
    "nodes: 2\noverlap:\n  codec_beside_transfer: 1\n  transfer_beside_codec: 1\n  classes:\n"
    "    gemm: {beside_codec: 1, beside_transfer: 1, slows_codec: 1, slows_transfer: 1}\n"
    "    attention: {beside_codec: 1, beside_transfer: 1, slows_codec: 1, slows_transfer: 1}\n"
    "    elementwise: {beside_codec: 1, beside_transfer: 1, slows_codec: 1, slows_transfer: 1}\n"
    "    reduction: {beside_codec: 1, beside_transfer: 1, slows_codec: 1, slows_transfer: 1}\n"
    "    norm: {beside_codec: 3, beside_transfer: 1, slows_codec: 3, slows_transfer: 1}\n";

TEST_CASE_METHOD(SimFixture, "reports say which mix of computation a prediction rests on",
                 "[tool]") {
  write("matrix.yaml", kMatrix);
  const auto model = [](const std::string& mix) {
    return "name: m\nforward: 1ms\n" + mix +
           "gradients:\n- {name: a, elements: 1000000, ready: 4ms}\n"
           "- {name: b, elements: 1000000, ready: 8ms}\n";
  };
  write("gemm.yaml", model("mix: {gemm: 1}\n"));
  write("norm.yaml", model("mix: {norm: 1}\n"));
  write("none.yaml", model(""));
  const auto simulated = [&](const std::string& name, const std::string& cluster) {
    const ToolRun done = run("hipress-sim --json --plan all --topology ps --nnodes 2 --input " +
                             name + ".yaml" + cluster);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out);
  };
  const std::string on_matrix = " --cluster matrix.yaml";
  const auto gemm = simulated("gemm", on_matrix), norm = simulated("norm", on_matrix);
  // Class gemm does not slow codecs, so a model of gemm alone is as fast as without a matrix.
  CHECK(gemm["iteration_s"] == simulated("gemm", "")["iteration_s"]);
  CHECK(norm["iteration_s"].get<double>() > gemm["iteration_s"].get<double>());
  CHECK(gemm["mix"]["gemm"] == 1);
  CHECK(gemm["mix_assumed"] == false);
  const auto none = simulated("none", on_matrix);
  CHECK(none["mix"]["norm"] == 0.05);
  CHECK(none["mix_assumed"] == true);
  CHECK(none["iteration_s"].get<double>() > gemm["iteration_s"].get<double>());
  CHECK_THAT(none["machines"].get<std::string>(), Contains("assumed mix gemm 46 %, attention 2 %"));
  CHECK_FALSE(simulated("gemm", "").contains("mix"));
  CHECK_FALSE(simulated("gemm", "").contains("mix_assumed"));

  CHECK_THAT(run("hipress-sim --plan all --nnodes 2 --input norm.yaml" + on_matrix).out,
             Contains(", mix norm 100 %"));
  const ToolRun planned =
      run("hipress-plan --profile sosp21 --input none.yaml --budget 0.1" + on_matrix);
  CHECK_THAT(planned.out, Contains("assumed mix gemm 46 %"));
  const auto json = nlohmann::json::parse(
      run("hipress-plan --json --profile sosp21 --input none.yaml --budget 0.1" + on_matrix).out);
  CHECK(json["mix"]["elementwise"] == 0.45);
  CHECK(json["mix_assumed"] == true);
}

TEST_CASE_METHOD(SimFixture, "schedules' reports say the mix, too", "[tool]") {
  write("matrix.yaml", kMatrix);
  write("none.yaml",
        "name: m\nforward: 1ms\ngradients:\n- {name: a, elements: 100000, ready: 4ms}\n");
  const std::string how =
      "hipress-plan --profile sosp21 --input none.yaml --cluster matrix.yaml "
      "--schedule 'local(steps=4)'";
  CHECK_THAT(run(how).out, Contains("computation: assumed mix gemm 46 %"));
  CHECK(nlohmann::json::parse(run(how + " --json").out)["mix_assumed"] == true);
}

TEST_CASE_METHOD(SimFixture, "searches, bounds and warnings know a matrix", "[tool]") {
  write("matrix.yaml", kMatrix);
  write("norm.yaml",
        "name: m\nforward: 1ms\nmix: {norm: 1}\ngradients:\n"
        "- {name: a, elements: 4000000, ready: 4ms}\n- {name: b, elements: 1000000, ready: 8ms}\n");
  const std::string how = " --input norm.yaml --profile sosp21 --cluster matrix.yaml --topology ps";
  const auto planned =
      nlohmann::json::parse(run("hipress-plan --json --budget 0.2 --output p.yaml" + how).out);
  const auto simulated = nlohmann::json::parse(run("hipress-sim --json --plan p.yaml" + how).out);
  CHECK(planned["predicted_iteration_s"] == simulated["iteration_s"]);
  CHECK(planned["lower_bound_s"].get<double>() <= simulated["iteration_s"].get<double>());
  // Codecs that slow the computation are one more reason not to compress.
  const auto all = nlohmann::json::parse(run("hipress-sim --json --plan all" + how).out);
  CHECK(all["iteration_s"].get<double>() >= simulated["iteration_s"].get<double>());
  const ToolRun warned = run("hipress-sim --plan none" + how);
  // Without codecs, codec_beside_transfer has no effect, but factors of transfers have.
  CHECK_THAT(warned.err, Contains("matrix.yaml: overlap.codec_beside_transfer has no effect"));
  CHECK_THAT(warned.err, !Contains("overlap.classes"));
}

TEST_CASE_METHOD(SimFixture, "option --trace writes a trace beside either report", "[tool]") {
  CHECK(run("hipress-sim --plan all --trace trace.json " + kTwo).status == 0);
  const auto trace = nlohmann::json::parse(read("trace.json"));
  CHECK(trace.at("traceEvents").size() > 0);
  CHECK(run("hipress-sim --plan all --trace again.json --json " + kTwo).status == 0);
  CHECK(read("again.json") == read("trace.json"));
}

TEST_CASE_METHOD(SimFixture, "a trace that cannot be written costs no report", "[tool]") {
  const ToolRun done = run("hipress-sim --plan none --trace /dev/full " + kTwo);
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("/dev/full"));
  CHECK_THAT(done.out, Contains("iteration               4.286ms"));
}

TEST_CASE_METHOD(SimFixture, "a plan's own Ks and choices are simulated", "[tool]") {
  write("plan.txt", "late,64000,y,2\nearly,320,n,1\n");
  const ToolRun mixed = run("hipress-sim --json --plan plan.txt " + kTwo);
  REQUIRE(mixed.status == 0);
  // 'late' has K = 2 and is compressed: each partition has 2 encodes, 3 decodes (2N−1), 2 sends and
  // 2 receives, which are 9 tasks. 'early' has K = 1 and is raw: 2 sends, 2 receives and a merge.
  CHECK(nlohmann::json::parse(mixed.out).at("tasks") == 2 * 3 + 2 * 9 + 5);
}

TEST_CASE_METHOD(SimFixture, "a model without gradients is refused: nothing is synchronised",
                 "[tool]") {
  write("empty.yaml", "name: none\nforward: 2ms\ngradients: []\n");
  refuses("--input empty.yaml --plan none --nnodes 3", "empty.yaml: nothing to synchronise",
          "give at least one");
}

TEST_CASE_METHOD(SimFixture,
                 "one node, and stragglers of a cluster file, change the time as they should",
                 "[tool]") {
  const ToolRun alone =
      run("hipress-sim --json --input model.yaml --profile cheap.yaml --plan none --nnodes 1");
  REQUIRE(alone.status == 0);
  CHECK(nlohmann::json::parse(alone.out).at("iteration_s") == 4e-3);
  write("cluster.yaml", "nodes: 2\ncompute_speed: {1: 0.5}\n");
  const ToolRun slow =
      run("hipress-sim --json --input model.yaml --profile cheap.yaml --plan none --cluster "
          "cluster.yaml");
  REQUIRE(slow.status == 0);
  CHECK(nlohmann::json::parse(slow.out).at("compute_s") == 8e-3);  // twice 1 + 3 ms
}

TEST_CASE_METHOD(SimFixture, "faster nodes spend less time before and beside communication",
                 "[tool]") {
  write("fast.yaml", "nodes: 2\ncompute_speed: {0: 4, 1: 4}\n");
  const std::string command = "hipress-sim --json --plan none --cluster fast.yaml " + kTwo;
  const ToolRun once = run(command);
  REQUIRE(once.status == 0);
  // Computation takes a quarter of 1 + 3 ms, then the ring takes 0.286 ms.
  const auto report = nlohmann::json::parse(once.out);
  CHECK(report.at("iteration_s").get<double>() == Approx(1.286e-3).epsilon(1e-12));
  CHECK(report.at("synchronisation_s").get<double>() == Approx(1.036e-3).epsilon(1e-12));
  CHECK(report.at("compute_s").get<double>() == Approx(1e-3).epsilon(1e-12));
  CHECK(report.at("exposed_communication_s").get<double>() == Approx(0.286e-3).epsilon(1e-12));
  const ToolRun steady = run(command + "--steady=4");
  REQUIRE(steady.status == 0);
  const auto settled = nlohmann::json::parse(steady.out);
  const double period_s = settled.at("iteration_s").get<double>();
  CHECK(settled.at("compute_s").get<double>() == Approx(1e-3).epsilon(1e-12));
  CHECK(settled.at("exposed_communication_s").get<double>() == Approx(period_s - 1e-3));
  CHECK(settled.at("synchronisation_s").get<double>() == Approx(period_s - 0.25e-3));
}

TEST_CASE_METHOD(SimFixture,
                 "graphs without room are refused at once, with what makes them smaller",
                 "[tool]") {
  const std::string many = "--input model.yaml --profile cheap.yaml --plan all --nnodes 1048576 ";
  // The elements limit the number of slices to 64000/32 + 320/32 = 2010. Each has 7(N−1) + 2 tasks.
  const ToolRun whole = run("hipress-sim " + many);
  CHECK(whole.status == 2);
  CHECK(whole.out.empty());
  CHECK_THAT(whole.err, Contains("about 1.5e+10 tasks") && Contains("fewer nodes (--nnodes)"));
  write("even.yaml", "name: even\ngradients:\n  - {name: g, elements: 33554432, ready: 1ms}\n");
  const std::string even = "--input even.yaml --profile cheap.yaml --plan all --nnodes 65536 ";
  CHECK_THAT(run("hipress-sim --fold never " + even).err,
             Contains("about 3e+10 tasks") && Contains("--fold auto (all nodes do the same"));
  CHECK_THAT(run("hipress-sim --trace t.json " + even).err, Contains("no --trace"));
  CHECK(!has("t.json"));
  const ToolRun vgg = run("hipress-sim --input vgg19 --plan all --nnodes 32768");
  CHECK(vgg.status == 2);
  CHECK_THAT(vgg.err, Contains("--fold always (one node is simulated for all, with bounds)"));
}

TEST_CASE_METHOD(SimFixture, "the documented example works", "[tool]") {
  const ToolRun done = run(documented_example(*this, "hipress-sim"));
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("38 gradients, ring, N = 8") &&
                           Contains("profile sosp21 (published), 8 nodes, links 37.64 Gbit/s") &&
                           Contains("since no --profile was given"));
}

TEST_CASE_METHOD(
    SimFixture, "a plan YAML's transfer order is that of its simulation, unless one is asked for") {
  // b and c become ready during the first hop of a. By ready time, c is last in the second hop,
  // too. By need, the second hop of a is last, since the next forward pass begins with c's layer.
  write("three.csv", "name,elements,ready_us\na,1000000,0\nb,500000,1\nc,1000,2\n");
  const std::string rest =
      "gradients:\n  - {name: a, elements: 1000000, algorithm: none, K: 2}\n"
      "  - {name: b, elements: 500000, algorithm: none, K: 2}\n"
      "  - {name: c, elements: 1000, algorithm: none, K: 2}\n";
  const std::string head = "schema: hipress.plan/1\ntopology: ring\nnodes: 2\n";
  write("plain.yaml", head + rest);
  write("ready.yaml", head + "transfer_order: ready\n" + rest);
  write("need.yaml", head + "transfer_order: need\n" + rest);
  const auto path_of = [&](const std::string& arguments) {
    const ToolRun done =
        run("hipress-sim --input three.csv --profile cheap.yaml --nnodes 2 "
            "--topology RING --network port --json --plan " +
            arguments);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("critical_path");
  };
  const nlohmann::json ready = path_of("plain.yaml");
  const nlohmann::json need = path_of("need.yaml");
  CHECK(ready.back().at("gradient") == "c");
  CHECK(need.back().at("gradient") == "a");
  CHECK(path_of("ready.yaml") == ready);
  CHECK(path_of("need.yaml --transfer-order ready") == ready);
  CHECK(path_of("plain.yaml --transfer-order need") == need);
  CHECK(path_of("ready.yaml --transfer-order need") == need);
}

const std::string kSweep =
    "model: model.yaml\nprofile: cheap.yaml\ntopology: [ps, ring]\nnodes: [2, 3, 4]\n"
    "bandwidth: [1Gbps, 8Gbps]\n";

TEST_CASE_METHOD(SimFixture, "a sweep writes one row per point, the same for any jobs and shards",
                 "[tool]") {
  write("spec.yaml", kSweep);
  const ToolRun done = run("hipress-sim sweep spec.yaml --output all.csv");
  REQUIRE(done.status == 0);
  CHECK(done.out.empty());
  // Two topologies and three numbers of nodes make 6 graphs of plan all, 6 of baseline none, and 3
  // of ddp, whose all-reduce does not use the topology. Each is simulated with both bandwidths.
  CHECK_THAT(done.err,
             Contains("12 points, 6 plans made, 15 graphs, 30 simulations") && !Contains("\r"));
  const std::string all = read("all.csv");
  const auto lines = std::count(all.begin(), all.end(), '\n');
  const std::size_t names = all.find("model,topology,");
  REQUIRE(names != std::string::npos);
  // After the head, which describes the inputs, come the column names and one row per point.
  const auto head = std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(names), '\n');
  CHECK(lines - head == 1 + 12);
  CHECK(run("hipress-sim sweep spec.yaml --output three.csv --jobs 3").status == 0);
  CHECK(read("three.csv") == all);
  std::string joined;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    CHECK(
        run(std::string("hipress-sim sweep spec.yaml --output part.csv --shard ") + shard).status ==
        0);
    joined += read("part.csv");
  }
  CHECK(joined == all);
}

TEST_CASE_METHOD(SimFixture, "a sweep's points are the single simulations", "[tool]") {
  write("spec.yaml", kSweep + "plan: none\n");
  REQUIRE(run("hipress-sim sweep spec.yaml --output all.csv").status == 0);
  // The point with ring, N = 2 and 8 Gbit/s is the hand-derived one above.
  CHECK_THAT(read("all.csv"),
             Contains("model.yaml,ring,2,none,onebit,plan,cheap.yaml,,fair,"
                      "1000000000,5e-06,1e-05,1,0.004286,0.003286,0.004,0.000286,1,"));
}

TEST_CASE_METHOD(SimFixture, "both helps open with an example, and one leads to the other",
                 "[tool]") {
  CHECK_THAT(run("hipress-sim --help").out, Contains("hipress-sim sweep --help"));
  CHECK(run(documented_example(*this, "hipress-sim sweep")).status == 0);
  // After the head come the column names, and rows of 2 plans at 3 sizes.
  const std::string csv = read("sweep.csv");
  CHECK(std::ranges::count(csv.substr(csv.find("\nmodel,") + 1), '\n') == 7);
  CHECK_THAT(run("hipress-sim sweep --help").out,
             Contains("compute_speed") && Contains("{from: 1Gbps, to: 64Gbps, times: 2}"));
}

TEST_CASE_METHOD(SimFixture, "a sweep warns of axes that change nothing", "[tool]") {
  write("spec.yaml", kSweep + "plan: none\nalgorithm: [onebit]\nlatency: [1us, 2us]\n");
  CHECK(run("hipress-sim sweep spec.yaml --output all.csv").err.find("warning") ==
        std::string::npos);
  write("spec.yaml",
        "model: model.yaml\nprofile: cheap.yaml\nnodes: 1\nbandwidth: [1Gbps, 2Gbps]\n");
  CHECK_THAT(run("hipress-sim sweep spec.yaml --output all.csv").err,
             Contains("warning: axis bandwidth has no effect"));
}

TEST_CASE_METHOD(SimFixture, "wrong requests of a sweep are refused and leave no file", "[tool]") {
  write("spec.yaml", kSweep);
  const auto refuse = [&](const std::string& arguments, const std::string& culprit) {
    CAPTURE(arguments);
    const std::size_t before = files();
    const ToolRun done = run("hipress-sim sweep " + arguments);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK_THAT(done.err, Contains("hipress-sim sweep: ") && Contains(culprit));
    CHECK(files() == before);
  };
  refuse("--output all.csv", "SPEC is required");
  refuse("spec.yaml", "--output is required");
  refuse("none.yaml --output all.csv", "none.yaml: cannot be read");
  refuse("spec.yaml --output no/such/all.csv", "choose a folder that exists");
  refuse("spec.yaml --output .", "is a folder");
  refuse("spec.yaml --output all.csv --shard 4/3", "such as 3/8");
  refuse("spec.yaml --output all.csv --jobs 0", "--jobs");
  write("need.yaml",
        "schema: hipress.plan/1\ntopology: ring\nnodes: 2\ntransfer_order: need\ngradients:\n"
        "  - {name: late, elements: 64000, algorithm: none, K: 2}\n"
        "  - {name: early, elements: 320, algorithm: none, K: 2}\n");
  write("ordered.yaml",
        "model: model.yaml\nprofile: cheap.yaml\ntopology: ring\nnodes: 2\nplan: need.yaml\n");
  refuse("ordered.yaml --output all.csv", "ordered.yaml:5: ");
  refuse("ordered.yaml --output all.csv", "transfer_order need");
  write("wrong.yaml", kSweep + "nods: 3\n");
  refuse("wrong.yaml --output all.csv", "wrong.yaml:6: axis 'nods'");
}

TEST_CASE_METHOD(SimFixture, "plans that are made for machines have names", "[tool]") {
  const auto seconds = [&](const std::string& arguments) {
    const ToolRun done = run("hipress-sim --json --evaluations 50 " + kTwo + arguments);
    CAPTURE(arguments, done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("iteration_s").get<double>();
  };
  // ddp has one bucket, complete at 1 + 3 ms. Its all-reduce is an ideal ring: 2 steps with half of
  // 257280 bytes, 10 + 128.64 + 5 us each.
  CHECK(seconds("--plan ddp") == Approx(4e-3 + 2 * 143.64e-6).epsilon(1e-12));
  const double best = seconds("--plan best");
  CHECK(best == seconds("--plan best"));
  for (const char* other : {"none", "all", "best_uncompressed", "none_grouped", "all_grouped",
                            "secopa", "secopa_grouped", "greedy", "threshold_262144"}) {
    CHECK(best <= 1.005 * seconds("--plan " + std::string(other)));
  }
  CHECK_THAT(run("hipress-sim --plan ddp " + kTwo).err, Contains("--topology has no effect"));
  refuses("--plan bets " + kTwo, "bets", "best, best_uncompressed, threshold_262144");
  // All-reduces carry only raw gradients.
  refuses("--plan all_grouped --input model.yaml --profile cheap.yaml --topology ALLREDUCE",
          "all_grouped", "");
}

TEST_CASE_METHOD(SimFixture, "a plan YAML says topology and nodes unless the command line does",
                 "[tool]") {
  const std::string head = "--input model.yaml --profile cheap.yaml ";
  write("plan.yaml",
        "schema: hipress.plan/1\ntopology: ring\nnodes: 2\ngradients:\n"
        "  - {name: late, elements: 64000, algorithm: onebit, K: 2}\n"
        "  - {name: early, elements: 320, algorithm: none, K: 1}\n");
  const ToolRun silent = run("hipress-sim --json --plan plan.yaml " + head);
  const ToolRun said = run("hipress-sim --json --plan plan.yaml " + kTwo);
  CAPTURE(silent.err);
  REQUIRE(silent.status == 0);
  const auto seconds = [](const ToolRun& run) {
    return nlohmann::json::parse(run.out).at("iteration_s").get<double>();
  };
  CHECK(seconds(silent) == seconds(said));
  write("links.yaml", "link: {latency: 5us}\n");
  CHECK(run("hipress-sim --plan plan.yaml --cluster links.yaml " + head).status == 0);
  refuses("--plan plan.yaml --topology PS " + head, "'ring', not ps", "--topology ring");
  refuses("--plan plan.yaml --nnodes 3 " + head, "2 nodes, not 3", "--nnodes 2");
  write("three.yaml", "nodes: 3\n");
  refuses("--plan plan.yaml --cluster three.yaml " + head, "2 nodes, not 3", "--nnodes 2");
}

TEST_CASE_METHOD(SimFixture, "a trace names model and plan", "[tool]") {
  REQUIRE(run("hipress-sim --plan all --trace trace.json " + kTwo).status == 0);
  CHECK(nlohmann::json::parse(read("trace.json")).at("otherData") ==
        nlohmann::json({{"model", "two"}, {"plan", "plan all, ring, N = 2"}}));
}

TEST_CASE_METHOD(SimFixture, "a sweep plans for the machines of each point", "[tool]") {
  write("spec.yaml",
        "model: model.yaml\nprofile: cheap.yaml\ntopology: ring\nnodes: 2\n"
        "plan: [best_uncompressed, best, ddp]\nbandwidth: [10MB/s, 1GB/s]\n");
  const ToolRun done =
      run("hipress-sim sweep spec.yaml --output sweep.csv --evaluations 50 --jobs 2");
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Contains("6 points, 5 plans made"));
  const std::string csv = read("sweep.csv");
  CHECK_THAT(csv, Contains("model.yaml,ring,2,ddp,onebit,plan,cheap.yaml,,fair,1000000000,"));
  CHECK(run("hipress-sim sweep spec.yaml --output again.csv --evaluations 50 --jobs 1").status ==
        0);
  CHECK(read("again.csv") == csv);
}

TEST_CASE_METHOD(SimFixture, "of a plan that is made, the topology may be left open", "[tool]") {
  const std::string ask =
      "hipress-sim --input vgg19 --profile a100-10g --nnodes 4 --evaluations 100 --json --plan ";
  const auto iteration_s = [&](const std::string& arguments) {
    const ToolRun done = run(ask + arguments);
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("iteration_s").get<double>();
  };
  const double open_s = iteration_s("none_grouped --topology BEST");
  for (const char* one : {"PS", "RING"}) {
    CHECK(open_s <= iteration_s(std::string("none_grouped --topology ") + one) * (1 + 1e-9));
  }
  CHECK(iteration_s("best --topology BEST") > 0);
  CHECK(iteration_s("ddp --topology BEST") == iteration_s("ddp --topology ring"));
  refuses("--input vgg19 --plan all --topology BEST", "--topology BEST", "ring");
}

TEST_CASE_METHOD(SimFixture, "wrong requests of hipress-sim are refused with their remedy",
                 "[tool]") {
  SECTION("no input") { refuses("--plan none", "--input", "required"); }
  SECTION("no plan") { refuses("--input model.yaml", "--plan", "required"); }
  SECTION("no such plan") { refuses("--plan nothing " + kTwo, "nothing", "threshold"); }
  SECTION("unknown topology") {
    refuses("--input model.yaml --plan none --topology STAR", "STAR", "ps, ring");
  }
  SECTION("unknown network") {
    refuses("--network torus --plan none " + kTwo, "torus", "port, fair");
  }
  SECTION("unknown algorithm") { refuses("--algorithm zip --plan all " + kTwo, "zip", "onebit"); }
  SECTION("algorithm that the profile lacks") { refuses("--plan tbq " + kTwo, "tbq", "onebit"); }
  SECTION("unknown way to fold") {
    const ToolRun done = run("hipress-sim --fold twice --plan none " + kTwo);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("twice") && Contains("auto, never, always"));
  }
  SECTION("a trace of a folded graph") {
    refuses("--fold always --plan none " + kTwo, "--trace", "leave one of them out");
  }
  SECTION("folding of nodes that differ") {
    write("one.txt", "late,64000,y,1\nearly,320,n,1\n");
    const ToolRun done = run("hipress-sim --fold always --plan one.txt " + kTwo);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("'early' has 1 partitions"));
  }
  SECTION("no nodes") { refuses("--input model.yaml --plan none --nnodes 0", "0", "1 to"); }
  SECTION("no partitions") {
    write("plan.txt", "late,64000,y,0\nearly,320,n,1\n");
    refuses("--plan plan.txt " + kTwo, "plan.txt:1", "late");
  }
  SECTION("plan for other gradients") {
    write("plan.txt", "late,64000,y,2\nearlier,320,n,1\n");
    refuses("--plan plan.txt " + kTwo, "plan.txt:2", "earlier");
  }
  SECTION("plan for other sizes") {
    write("plan.txt", "late,64001,y,2\nearly,320,n,1\n");
    refuses("--plan plan.txt " + kTwo, "plan.txt:1", "64001");
  }
  SECTION("plan that misses a gradient") {
    write("plan.txt", "late,64000,y,2\n");
    refuses("--plan plan.txt " + kTwo, "early", "plan.txt");
  }
  SECTION("truncated profile") {
    write("cut.yaml", read("cheap.yaml").substr(0, 200));
    refuses("--input model.yaml --plan none --profile cut.yaml", "cut.yaml:", "");
  }
  SECTION("missing unit in a profile") {
    std::string text = read("cheap.yaml");
    text.replace(text.find("8Gbps"), 5, "8");
    write("bad.yaml", text);
    refuses("--input model.yaml --plan none --profile bad.yaml", "bad.yaml:12", "Gbps");
  }
  SECTION("no jobs, or absurdly many") {
    refuses("--plan none --jobs 0 " + kTwo, "--jobs", "1 to");
    refuses("--plan none --jobs 100000 " + kTwo, "--jobs", "4096");
  }
  SECTION("no folder for the trace") {
    // The option is refused before any input file is read.
    const ToolRun done = run("hipress-sim --plan none.txt --trace no/such/trace.json " + kTwo);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("no/such"));
  }
}

}  // namespace
}  // namespace hipress::planner
