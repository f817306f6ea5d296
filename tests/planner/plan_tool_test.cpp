#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;
using Catch::StartsWith;

std::string shipped_profile() { return source_file("profiler/profiles/sosp21.yaml"); }

/// A workplace in which input.txt is VGG19.
class PlanFixture : public Workplace {
 public:
  PlanFixture() { write("input.txt", data("vgg19_gradients.txt")); }

  /// Checks that the tool exits with 2, names culprit and remedy, and writes no file.
  void refuses(const std::string& arguments, const std::string& culprit,
               const std::string& remedy) const {
    CAPTURE(arguments);
    const std::size_t before = files();
    const ToolRun run_ = run("hipress-plan " + arguments);
    CHECK(run_.status == 2);
    CHECK(run_.out.empty());
    CHECK_THAT(run_.err, Contains(culprit) && Contains(remedy));
    CHECK(files() == before);
  }
};

TEST_CASE_METHOD(PlanFixture, "without a profile, plans equal SeCoPa's to the byte", "[tool]") {
  for (const std::string topology : {"PS", "RING"}) {
    for (const std::string nodes : {"4", "8", "16"}) {
      CAPTURE(topology, nodes);
      const ToolRun done = run("hipress-plan --topology " + topology + " --nnodes " + nodes);
      CHECK(done.status == 0);
      CHECK(done.err.empty());
      CHECK(read("SeCoPaPlan.txt") == data("secopa_vgg19_" + topology + "_" + nodes + ".txt"));
    }
  }
}

TEST_CASE_METHOD(PlanFixture, "one node is advised not to compress", "[tool]") {
  const ToolRun done = run("hipress-plan --nnodes 1");
  CHECK(done.status == 0);
  CHECK_THAT(done.out, StartsWith("do not compress: ") && Contains("one node"));
}

TEST_CASE_METHOD(PlanFixture, "VGG19 on 10 Gbit/s is advised to compress", "[tool]") {
  write("slow.yaml", "nodes: 8\nlink: {bandwidth: 10Gbps}\n");
  const ToolRun done =
      run("hipress-plan --input vgg19 --cluster slow.yaml --evaluations 300 --json");
  REQUIRE(done.status == 0);
  CHECK(nlohmann::json::parse(done.out).at("advice") == "compress");
}

TEST_CASE_METHOD(PlanFixture, "ResNet50 between fast GPUs on 400 Gbit/s is advised not to",
                 "[tool]") {
  for (const char* topology : {"PS", "BEST"}) {
    const ToolRun done =
        run(std::string("hipress-plan --input resnet50 --nnodes 8 --profile h100-400g --json ") +
            "--evaluations 300 --topology " + topology);
    REQUIRE(done.status == 0);
    const auto report = nlohmann::json::parse(done.out);
    CHECK(report.at("advice") == "do not compress");
    CHECK(report.at("compressed") == 0);
  }
}

TEST_CASE_METHOD(PlanFixture, "the file holds what the verdict advises", "[tool]") {
  // Compression pays at the first bandwidth, but not at the last.
  int against = 0;
  for (const char* bandwidth : {"5Gbps", "25Gbps", "100Gbps"}) {
    for (const char* machines : {"--profile sosp21", "--profile a100-25g --gpus-per-node 4"}) {
      for (const char* output : {"plan.txt", "plan.yaml"}) {
        CAPTURE(bandwidth, machines, output);
        const std::string command = fmt::format(
            "hipress-plan --input resnet50 --nnodes 4 --bandwidth {} {} --evaluations 200 --json "
            "--output {}",
            bandwidth, machines, output);
        const ToolRun done = run(command);
        REQUIRE(done.status == 0);
        const auto report = nlohmann::json::parse(done.out);
        if (report.at("advice") != "do not compress") continue;
        ++against;
        CHECK(report.at("compressed") == 0);
        const ToolRun fastest = run(command + " --write fastest");
        REQUIRE(fastest.status == 0);
        const double fastest_s =
            nlohmann::json::parse(fastest.out).at("predicted_iteration_s").get<double>();
        CHECK(fastest_s <= report.at("predicted_iteration_s").get<double>() * (1 + 1e-9));
      }
    }
  }
  CHECK(against > 0);
  refuses("--write slowest", "--write", "fastest");
}

TEST_CASE_METHOD(PlanFixture,
                 "a hierarchy is planned for at whichever level, however it is written", "[tool]") {
  write("two_levels.yaml",
        "nodes: 2\ngpus_per_node: 4\ngpu_link: {bandwidth: 250GB/s, overhead: "
        "5us}\nlink: {bandwidth: 100Gbps, overhead: 10us, latency: 10us}\n");
  write("one_level.yaml",
        "nodes: 8\nnodes_per_host: 4\nhost_link: {bandwidth: 250GB/s, overhead: "
        "5us}\nlink: {bandwidth: 100Gbps, overhead: 10us, latency: 10us}\n");
  std::vector<nlohmann::json> ddp;
  std::vector<double> saved;
  for (const char* cluster : {"two_levels.yaml", "one_level.yaml"}) {
    for (const char* output : {"x.yaml", "x.txt"}) {
      CAPTURE(cluster, output);
      const ToolRun done = run(fmt::format(
          "hipress-plan --input vgg19 --profile a100-100g --bandwidth 10Gbps --cluster {} "
          "--topology BEST --output {} --evaluations 2000 --algorithm onebit,fp16 --json",
          cluster, output));
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      const nlohmann::json report = nlohmann::json::parse(done.out);
      nlohmann::json& baselines = ddp.emplace_back();
      for (const char* name : {"ddp", "ddp_fp16", "ddp_powersgd"}) {
        baselines.push_back(report.at("baselines").at(name));
        CHECK(baselines.back().is_number());
      }
      saved.push_back(1 - report.at("predicted_iteration_s").get<double>() /
                              report.at("best_uncompressed_s").get<double>());
    }
    const ToolRun done = run(fmt::format(
        "hipress-sim --input vgg19 --profile a100-100g --bandwidth 10Gbps --cluster {} --plan ddp "
        "--json",
        cluster));
    REQUIRE(done.status == 0);
    CHECK(nlohmann::json::parse(done.out).at("iteration_s") == ddp.front().front());
  }
  for (std::size_t i = 0; i < ddp.size(); ++i) {
    CHECK(ddp[i] == ddp.front());
    CHECK(saved[i] == Approx(saved.front()).margin(0.01));
  }
}

TEST_CASE_METHOD(PlanFixture,
                 "an algorithm with momentum is announced, and goes by allgather alone", "[tool]") {
  const std::string momentum =
      "--input vgg19 --nnodes 4 --profile sosp21 --evaluations 50 --output x.yaml --algorithm "
      "'dgc(momentum=0.9)' --topology ";
  const ToolRun done = run("hipress-plan " + momentum + "ALLGATHER");
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Contains("dgc(momentum=0.9) is an optimizer of its own") &&
                           Contains("up to 10 times it"));
  CHECK_THAT(read("x.yaml"), StartsWith("# dgc(momentum=0.9) is an optimizer of its own"));
  const ToolRun same = run("hipress-sim --input vgg19 --nnodes 4 --profile sosp21 --plan x.yaml");
  CAPTURE(same.err);
  CHECK(same.status == 0);
  refuses(momentum + "RING", "adds gradients before it encodes them", "take allgather");
}

TEST_CASE_METHOD(PlanFixture, "many small gradients that hide are not compressed for nothing",
                 "[tool]") {
  std::string csv = "name,elements,ready_us\n";
  for (int g = 0; g < 300; ++g) {
    csv += fmt::format("g{},148000,{}\n", g, 400 * (g + 1));
  }
  write("like_resnet101.csv", csv);
  write("c25.yaml",
        "nodes: 8\ngpus_per_node: 4\ngpu_link: {bandwidth: 250GB/s, overhead: 5us}\n"
        "link: {bandwidth: 25Gbps, overhead: 20us, latency: 20us}\n");
  for (const char* topology : {"PS", "RING", "BEST"}) {
    CAPTURE(topology);
    const ToolRun done =
        run(std::string("hipress-plan --input like_resnet101.csv --cluster c25.yaml --json ") +
            "--evaluations 600 --topology " + topology);
    REQUIRE(done.status == 0);
    const auto report = nlohmann::json::parse(done.out);
    const double planned_s = report.at("predicted_iteration_s");
    CHECK(planned_s == Approx(report.at("best_uncompressed_s").get<double>()).epsilon(0.01));
    CHECK(report.at("advice") == "do not compress");
  }
}

TEST_CASE_METHOD(PlanFixture, "SeCoPa.py's command line and defaults work", "[tool]") {
  CHECK(run("hipress-plan --topology RING --nnodes 16").status == 0);
  CHECK(read("SeCoPaPlan.txt") == data("secopa_vgg19_RING_16.txt"));
  CHECK(run("hipress-plan --topology ps --output other.txt").status == 0);
  CHECK(read("other.txt") == data("secopa_vgg19_PS_16.txt"));
}

TEST_CASE_METHOD(PlanFixture, "the drop-in for SeCoPa prints what is recorded", "[tool]") {
  write("vgg19_gradients.txt", data("vgg19_gradients.txt"));
  const ToolRun done = run("hipress-plan --input vgg19_gradients.txt --topology PS --nnodes 16");
  CHECK(done.status == 0);
  // The first lines are the verdict: the advice, the saving, and the time of DDP.
  CHECK_THAT(done.out, StartsWith("too close to call: without ready times"));
  const std::size_t first = done.out.find("\nprofile ");
  REQUIRE(first != std::string::npos);
  CHECK(std::count(done.out.begin(), done.out.begin() + static_cast<std::ptrdiff_t>(first), '\n') ==
        3);
  CHECK_THAT(done.out.substr(0, first), Contains(" over PyTorch DDP, and "));
  const std::size_t second = done.out.find('\n', first + 1);
  CHECK_THAT(done.out.substr(first + 1, second - first),
             StartsWith("profile sosp21 (published), 16 nodes") && Contains("no --profile"));
  CHECK(done.out.substr(second + 1) ==
        "SeCoPaPlan.txt: 38 gradients, ps, N = 16; 3 compressed with onebit\n");
  CHECK(read("SeCoPaPlan.txt") == data("secopa_vgg19_PS_16.txt"));
}

TEST_CASE_METHOD(PlanFixture, "the documented example works in any folder", "[tool]") {
  const ToolRun done = run(documented_example(*this, "hipress-plan"));
  CHECK(done.status == 0);
  CHECK_THAT(done.out, StartsWith("compress (") && Contains("profile a100-10g"));
}

TEST_CASE_METHOD(PlanFixture, "without arguments the usage is printed and nothing is planned",
                 "[tool]") {
  write("vgg19_gradients.txt", data("vgg19_gradients.txt"));
  const ToolRun done = run("hipress-plan");
  CHECK(done.status == 2);
  CHECK(done.out.empty());
  CHECK_THAT(done.err, StartsWith("Example:\n  hipress-plan --input vgg19 ") &&
                           Contains("Usage: hipress-plan [OPTIONS]"));
  CHECK_FALSE(has("SeCoPaPlan.txt"));
}

TEST_CASE_METHOD(PlanFixture, "any number of nodes gets a plan, and its source is said", "[tool]") {
  const auto lines = [&] {
    const std::string plan = read("SeCoPaPlan.txt");
    return std::count(plan.begin(), plan.end(), '\n');
  };
  for (const auto& [nodes, said] :
       std::vector<std::pair<std::string, std::string>>{{"1", "one node"},
                                                        {"2", "extrapolated"},
                                                        {"5", "interpolated"},
                                                        {"12", "interpolated"},
                                                        {"32", "extrapolated"}}) {
    CAPTURE(nodes);
    const ToolRun done = run("hipress-plan --nnodes " + nodes);
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains(said));
    CHECK(lines() == 38);
  }
  CHECK(run("hipress-plan --nnodes 1").status == 0);
  const std::string alone = read("SeCoPaPlan.txt");
  CHECK_THAT(alone, Contains("vgg0_dense0_weight,102760448,n,1\n") && !Contains(",y,"));
}

TEST_CASE_METHOD(PlanFixture, "option --json prints one object with the documented keys",
                 "[tool]") {
  const ToolRun done = run("hipress-plan --nnodes 4 --json");
  CHECK(done.status == 0);
  const auto report = nlohmann::json::parse(done.out);
  CHECK(report.size() == 26);
  CHECK(report.at("model") == "input");
  // SeCoPa's files contain no times.
  CHECK(report.at("advice") == "too close to call");
  CHECK(report.at("advice_probability").is_null());
  CHECK_THAT(report.at("verdict").get<std::string>(),
             StartsWith("too close to call: without ready times") &&
                 Contains(": compress (99 % sure, learning not measured"));
  for (const std::string time : {"predicted_iteration_s", "best_uncompressed_s"}) {
    CHECK(report.at(time + "_p10").get<double>() < report.at(time).get<double>());
    CHECK(report.at(time + "_p90").get<double>() > report.at(time).get<double>());
  }
  CHECK(report.at("passes") == nlohmann::json::array());  // plans of search secopa are not polished
  CHECK(report.at("gradients") == 38);
  CHECK(report.at("compressed") == 11);  // number of lines with y in secopa_vgg19_PS_4.txt
  CHECK(report.at("lower_bound_s").is_null());
  CHECK(report.at("gap").is_null());
  CHECK(report.at("topology") == "ps");
  CHECK(report.at("raw_topology") == "ps");
  CHECK(report.at("evaluations") == 0);
  CHECK(report.at("search_s").get<double>() > 0);
  const auto& baselines = report.at("baselines");
  CHECK(baselines.size() == 13);
  for (const char* name :
       {"none", "fp16", "all", "secopa", "threshold_262144", "greedy", "ddp", "ddp_fp16",
        "ddp_powersgd", "none_grouped", "fp16_grouped", "all_grouped", "secopa_grouped"}) {
    CHECK(baselines.at(name).get<double>() > 0);
    CHECK(report.at("baselines_p10").at(name) < baselines.at(name));
    CHECK(report.at("baselines_p90").at(name) > baselines.at(name));
    const double probability = report.at("faster_than").at(name);
    CHECK((probability >= 0 && probability <= 1));
  }
  CHECK(report.at("faster_than").at("none").get<double>() > 0.9);
  CHECK(report.at("predicted_iteration_s") == baselines.at("secopa"));
}

TEST_CASE_METHOD(PlanFixture,
                 "with a profile, the baselines are shown, and the faster one is named", "[tool]") {
  const ToolRun done =
      run("hipress-plan --nnodes 4 --profile v100-100g --network port --search secopa");
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("profile v100-100g, network port") && Contains("none") &&
                           Contains("fp16") && Contains("threshold_262144") && Contains("secopa") &&
                           Contains("this plan"));
}

TEST_CASE_METHOD(PlanFixture, "search greedy writes the baseline of that name as it is", "[tool]") {
  const ToolRun done =
      run("hipress-plan --nnodes 4 --profile v100-100g --network port --search greedy --json "
          "--budget 3");
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("--budget has no effect"));
  const auto report = nlohmann::json::parse(done.out);
  CHECK(report.at("predicted_iteration_s") == report.at("baselines").at("greedy"));
  CHECK(report.at("passes") == nlohmann::json::array());
  CHECK(report.at("lower_bound_s").get<double>() <= report.at("predicted_iteration_s"));
}

TEST_CASE_METHOD(PlanFixture, "a plan YAML says what was predicted, with what", "[tool]") {
  CHECK(run("hipress-plan --nnodes 4 --output plan.yaml").status == 0);
  CHECK_THAT(read("plan.yaml"), Contains("topology: ps") && Contains("nodes: 4") &&
                                    Contains("sosp21") && Contains("search: secopa") &&
                                    Contains("network: fair"));
  CHECK(run("hipress-sim --input input.txt --plan plan.yaml --nnodes 4").status == 0);
}

TEST_CASE_METHOD(PlanFixture, "a cluster file sets nodes and links", "[tool]") {
  write("slow.yaml", "nodes: 4\nlink: {bandwidth: 1Gbps}\n");
  write("fast.yaml", "nodes: 4\nlink: {bandwidth: 400Gbps}\n");
  const auto predicted = [&](const std::string& cluster) {
    const ToolRun done =
        run("hipress-plan --profile v100-100g --budget 0 --json --cluster " + cluster);
    CHECK(done.status == 0);
    return nlohmann::json::parse(done.out).at("baselines").at("none").get<double>();
  };
  // Each node sends 3/2 of 574.7 MB: 6.9 s at 1 Gbit/s, 17 ms at 400 Gbit/s.
  CHECK(predicted("slow.yaml") > 6.8);
  CHECK(predicted("fast.yaml") < 0.1);
}

TEST_CASE_METHOD(
    PlanFixture,
    "on other links an all-reduce costs the wire there and what it cost beside the wire, "
    "in hipress-sim, too",
    "[tool]") {
  write("model.csv", "name,elements,ready_us\ng,64000,1000\n");
  // The all-reduce was measured at 1 GB/s with 2 ns a byte; an ideal ring of two takes 1 ns a byte.
  write("lab.yaml",
        "schema: hipress.profile/1\nname: lab\nsource: test\n"
        "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s}\n"
        "kernels:\n  merge: {pieces: []}\n  codecs:\n    onebit:\n"
        "      encode: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
        "      decode: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
        "      decode_add: {pieces: [{from: 0, a_s: 1e-4, s_per_element: 0}]}\n"
        "links:\n  overhead: 0us\n  bandwidth: 8Gbps\n  latency: 0us\n"
        "  all_reduce:\n    2: {pieces: [{from: 0, a_s: 0, s_per_byte: 2e-9}]}\n...\n");
  write("slow.yaml", "nodes: 2\nlink: {bandwidth: 800Mbps}\n");
  const std::string common =
      " --input model.csv --topology ALLREDUCE --profile lab.yaml --cluster slow.yaml --json";
  const ToolRun planned = run("hipress-plan --evaluations 10" + common);
  REQUIRE(planned.status == 0);
  const auto report = nlohmann::json::parse(planned.out);
  // After 1 ms of backward, each of 256000 bytes takes 10 ns on the link, which has a tenth of the
  // bandwidth, and the 1 ns that was measured in excess of the ideal ring.
  CHECK(report.at("predicted_iteration_s").get<double>() == Approx(3.816e-3).epsilon(1e-9));
  CHECK(report.at("baselines").at("none") == report.at("predicted_iteration_s"));
  CHECK(report.at("lower_bound_s").get<double>() <= report.at("predicted_iteration_s"));
  const ToolRun replayed = run("hipress-sim --plan SeCoPaPlan.txt" + common);
  REQUIRE(replayed.status == 0);
  CHECK(nlohmann::json::parse(replayed.out).at("iteration_s") ==
        report.at("predicted_iteration_s"));
}

TEST_CASE_METHOD(PlanFixture, "a search without iterations says that a budget has no effect",
                 "[tool]") {
  const ToolRun done = run("hipress-plan --budget 3");
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("--budget has no effect"));
}

TEST_CASE_METHOD(PlanFixture, "break-even without a compute time says what it takes for granted",
                 "[tool]") {
  const ToolRun done =
      run("hipress-plan --topology RING --nnodes 4 --break-even latency --evaluations 10 --json");
  REQUIRE(done.status == 0);
  const auto found = nlohmann::json::parse(done.out).at("break_even");
  CHECK(found.at("quantity") == "latency");
  CHECK_THAT(found.at("sentences").at(0).get<std::string>(),
             Contains("computation's time is not known"));
  REQUIRE(found.at("curve").size() > 2);
  for (const auto& at : found.at("curve")) {
    CHECK(at.at("speedup_p10") <= at.at("speedup"));
    CHECK(at.at("speedup") <= at.at("speedup_p90"));
  }
}

TEST_CASE_METHOD(PlanFixture, "a break-even over nodes counts those of the cluster file",
                 "[tool]") {
  write("c.yaml",
        "nodes: 4\ngpus_per_node: 2\ngpu_link: {bandwidth: 300GB/s, overhead: 5us}\n"
        "link: {bandwidth: 10Gbps}\n");
  write("one.csv", "name,elements,ready_us\na,4000000,1000\n");
  const ToolRun done =
      run("hipress-plan --input one.csv --profile a100-25g --cluster c.yaml --break-even nodes "
          "--compute-time 20ms --evaluations 1 --json --schedule fsdp");
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  const auto found = nlohmann::json::parse(done.out).at("break_even");
  CHECK(found.at("given") == 4);
  std::vector<double> values;
  for (const auto& at : found.at("curve")) values.push_back(at.at("value"));
  CHECK(std::ranges::find(values, 2) != values.end());
  CHECK(std::ranges::find(values, 8) != values.end());
}

TEST_CASE_METHOD(PlanFixture, "wrong requests of hipress-plan are refused with their remedy",
                 "[tool]") {
  SECTION("unknown topology") { refuses("--topology TREE", "TREE", "ps, ring"); }
  SECTION("unknown algorithm") { refuses("--algorithm onebot", "onebot", "onebit"); }
  SECTION("nothing but low rank for SeCoPa's formulas") {
    refuses("--algorithm 'powersgd(rank=1|2)'", "no formulas", "--search timeline");
  }
  SECTION("no algorithm") { refuses("--algorithm onebit,", "unknown algorithm", "onebit"); }
  SECTION("unknown break-even") {
    refuses("--break-even speed", "'speed'", "bandwidth, latency, nodes, compute-time");
  }
  SECTION("break-even of a given plan") {
    refuses("--plan none --break-even nodes", "--plan", "leave");
  }
  SECTION("break-even over nodes, of one") {
    refuses("--nnodes 1 --break-even nodes", "one node", "2 or more");
  }
  SECTION("break-even over too many nodes") {
    refuses("--nnodes 9000 --break-even nodes", "9000 nodes", "2 nodes and 8192 nodes");
  }
  SECTION("break-even over a compute time that is not known") {
    refuses("--break-even compute-time", "is unknown", "--compute-time");
  }
  SECTION("unknown network") { refuses("--network torus", "torus", "port, fair"); }
  SECTION("unknown search") { refuses("--search magic", "magic", "secopa"); }
  SECTION("best topology without simulation") { refuses("--topology BEST", "BEST", "timeline"); }
  SECTION("best topology for a baseline") {
    refuses("--topology BEST --search greedy", "greedy", "timeline");
  }
  SECTION("nothing to decide on") { refuses("--algorithm none", "secopa", "timeline"); }
  SECTION("unknown coarsest") { refuses("--coarsest onebot", "onebot", "onebit"); }
  SECTION("negative budget") { refuses("--search timeline --budget=-1", "budget", ""); }
  SECTION("no number as a budget") { refuses("--search timeline --budget nan", "budget", "'nan'"); }
  SECTION("no number as an uncertainty") {
    refuses("--robust --bandwidth-uncertainty nan", "--bandwidth-uncertainty", "'nan'");
  }
  SECTION("no nodes") { refuses("--nnodes 0", "0", "1 to"); }
  SECTION("negative nodes") { refuses("--nnodes=-4", "-4", "nnodes"); }
  SECTION("no input") { refuses("--input absent.txt", "absent.txt", ""); }
  SECTION("malformed line") {
    write("bad.txt", "conv1,100\nconv2\n");
    refuses("--input bad.txt", "bad.txt:2", "elements");
  }
  SECTION("negative size") {
    write("bad.txt", "conv1,100\nfc6.weight,-3\n");
    refuses("--input bad.txt", "bad.txt:2", "-3");
  }
  SECTION("huge size") {
    write("bad.txt", "fc6.weight,99999999999999999999\n");
    refuses("--input bad.txt", "bad.txt:1", "fc6.weight");
  }
  SECTION("duplicate gradient") {
    write("bad.txt", "conv1,100\nconv1,100\n");
    refuses("--input bad.txt", "bad.txt:2", "conv1");
  }
  SECTION("no such profile") { refuses("--profile sosp22", "sosp22", "sosp21"); }
  SECTION("unreadable profile") { refuses("--profile absent.yaml", "absent.yaml", ""); }
  SECTION("truncated profile") {
    const std::string whole = shipped_profile();
    write("cut.yaml", whole.substr(0, whole.size() / 2));
    refuses("--profile cut.yaml", "cut.yaml:", "");
  }
  SECTION("unknown key of a profile") {
    write("bad.yaml", "speed: fast\n" + shipped_profile());
    refuses("--profile bad.yaml", "bad.yaml:1", "'speed'");
  }
  SECTION("missing unit in a cluster") {
    write("bad.yaml", "nodes: 4\nlink: {bandwidth: 100}\n");
    refuses("--cluster bad.yaml", "bad.yaml:2", "Gbps");
  }
  SECTION("cluster of other nodes") {
    write("four.yaml", "nodes: 4\n");
    refuses("--cluster four.yaml --nnodes 8", "four.yaml:1", "8");
  }
  SECTION("no folder for the output") {
    refuses("--output no/such/folder/plan.txt", "no/such/folder", "");
  }
}

/// Runs search timeline. Returns its report, after checks of the plan's times.
nlohmann::json timeline_report(const Workplace& workplace, const std::string& arguments) {
  const ToolRun done =
      workplace.run("hipress-plan --search timeline --network port --json " + arguments);
  INFO(arguments << ": " << done.err);
  REQUIRE(done.status == 0);
  nlohmann::json report = nlohmann::json::parse(done.out);
  // Text files cannot hold groups. For accuracy, plans may be slightly slower than a baseline.
  const bool says_groups = arguments.find(".yaml") != std::string::npos;
  for (const auto& [name, time] : report.at("baselines").items()) {
    CAPTURE(name);
    if (name.starts_with("ddp") || (name.ends_with("_grouped") && !says_groups)) continue;
    CHECK(report.at("predicted_iteration_s").get<double>() <= 1.005 * time.get<double>());
  }
  const auto predicted_s = report.at("predicted_iteration_s").get<double>();
  const auto bound_s = report.at("lower_bound_s").get<double>();
  CHECK(bound_s <= predicted_s);
  // Without any work, both times are 0.
  const double gap = bound_s > 0 ? predicted_s / bound_s - 1 : 0;
  CHECK(report.at("gap").get<double>() == Approx(gap).margin(1e-12));
  return report;
}

TEST_CASE_METHOD(PlanFixture, "a timeline plan replays as predicted", "[tool]") {
  const std::string arguments = "--profile v100-100g --nnodes 4 --evaluations 600 --output ";
  for (const std::string plan : {"plan.yaml", "plan.txt"}) {
    CAPTURE(plan);
    const nlohmann::json report = timeline_report(*this, arguments + plan);
    // Some evaluations are kept for the last phase.
    CHECK(report.at("evaluations").get<int>() >= 500);
    CHECK(report.at("evaluations").get<int>() < 700);
    const ToolRun replayed =
        run("hipress-sim --input input.txt --nnodes 4 --profile v100-100g "
            "--network port --json --plan " +
            plan);
    REQUIRE(replayed.status == 0);
    CHECK(nlohmann::json::parse(replayed.out).at("iteration_s") ==
          report.at("predicted_iteration_s"));
  }
}

TEST_CASE_METHOD(PlanFixture, "a plan YAML says the transfer order that it was made for",
                 "[tool]") {
  const std::string arguments = "--profile v100-100g --nnodes 4 --evaluations 100 ";
  const nlohmann::json report =
      timeline_report(*this, arguments + "--transfer-order need --output plan.yaml");
  CHECK_THAT(read("plan.yaml"), Contains("transfer_order: need"));
  const ToolRun replayed =
      run("hipress-sim --input input.txt --nnodes 4 --profile v100-100g --network port --json "
          "--plan plan.yaml");
  REQUIRE(replayed.status == 0);
  CHECK(nlohmann::json::parse(replayed.out).at("iteration_s") ==
        report.at("predicted_iteration_s"));
  // An existing plan is simulated with the order in its file, unless an order is given.
  const auto compared = [&](const std::string& more) {
    const ToolRun done =
        run("hipress-plan --nnodes 4 --profile v100-100g --network port --plan "
            "plan.yaml --compare all " +
            more);
    REQUIRE(done.status == 0);
    return done.out;
  };
  CHECK_THAT(compared(""), Contains("transfer order"));
  CHECK_THAT(compared("--transfer-order ready"), !Contains("transfer order"));
  timeline_report(*this, arguments + "--output usual.yaml");
  CHECK_THAT(read("usual.yaml"), !Contains("transfer_order"));
}

TEST_CASE_METHOD(PlanFixture, "with a profile, the default search is timeline", "[tool]") {
  const ToolRun done =
      run("hipress-plan --nnodes 4 --profile v100-100g --evaluations 50 "
          "--output plan.yaml");
  CHECK(done.status == 0);
  CHECK_THAT(read("plan.yaml"), Contains("search: timeline"));
}

TEST_CASE_METHOD(PlanFixture, "search timeline plans whatever there is", "[tool]") {
  write("one.txt", "g,1000000\n");
  write("tiny.txt", "a,1\nb,2\nc,3\n");
  CHECK(timeline_report(*this, "--nnodes 1 --evaluations 50").at("compressed") == 0);
  CHECK(timeline_report(*this, "--input one.txt --evaluations 50").at("gradients") == 1);
  CHECK(timeline_report(*this, "--input tiny.txt --evaluations 50").at("compressed") == 0);
  CHECK(timeline_report(*this, "--topology BEST --budget 0").at("gradients") == 38);
  CHECK(timeline_report(*this, "--evaluations 0").at("gradients") == 38);
  const ToolRun none =
      run("hipress-plan --search timeline --algorithm none --evaluations 50 --json");
  CHECK(none.status == 0);
  CHECK(nlohmann::json::parse(none.out).at("compressed") == 0);
  const ToolRun casts = run("hipress-plan --search timeline --coarsest fp16 --evaluations 50");
  CHECK(casts.status == 0);
  CHECK_THAT(casts.out, Contains("compressed with fp16"));
}

TEST_CASE_METHOD(PlanFixture, "a plan compresses with the algorithms named and no others",
                 "[tool]") {
  // Each of two nodes sends half of 4 MB twice at 1 GB/s: 4 ms raw, 2 ms as fp16 (free here).
  write("model.csv", "name,elements,ready_us\ng,1000000,0\n");
  const std::string free = "{pieces: [{from: 0, a_s: 0, s_per_element: 0}]}";
  const std::string slow = "{pieces: [{from: 0, a_s: 1e-2, s_per_element: 0}]}";
  const auto codec = [](const std::string& name, const std::string& curve) {
    return "    " + name + ": {encode: " + curve + ", decode: " + curve + ", decode_add: " + curve +
           "}\n";
  };
  write("lab.yaml",
        "schema: hipress.profile/1\nname: lab\nsource: test\n"
        "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s}\n"
        "kernels:\n  merge: {pieces: []}\n  codecs:\n" +
            codec("onebit", slow) + codec("fp16", free) +
            "links: {overhead: 0us, bandwidth: 8Gbps, latency: 0us}\n...\n");
  const std::string common =
      "hipress-plan --input model.csv --nnodes 2 --profile lab.yaml --network port "
      "--evaluations 50 ";
  const std::string to_yaml = common + "--output plan.yaml ";
  for (const std::string algorithms : {"onebit", "none"}) {
    CAPTURE(algorithms);
    const ToolRun done = run(to_yaml + "--algorithm " + algorithms);
    REQUIRE(done.status == 0);
    CHECK_THAT(read("plan.yaml"), !Contains("fp16"));
    CHECK_THAT(done.out,
               Contains("'fp16' is faster than this plan, but --algorithm does not allow it"));
  }
  const ToolRun done = run(to_yaml);  // compresses with fp16, since int8block was not profiled
  REQUIRE(done.status == 0);
  CHECK_THAT(read("plan.yaml"), Contains("algorithm: fp16"));
  CHECK_THAT(done.out, !Contains("is faster than this plan"));
  CHECK_THAT(done.err, !Contains("--algorithm"));  // the YAML names the algorithm
  // A text plan does not name its only algorithm. A replay would take onebit, which is slow here.
  const ToolRun text = run(common + "--output plan.txt --json");
  REQUIRE(text.status == 0);
  CHECK_THAT(read("plan.txt"), Contains("g,1000000,y,2\n"));
  CHECK_THAT(text.err, Contains("the plan compresses with fp16") &&
                           Contains("replay with --algorithm 'fp16'"));
  const ToolRun replayed =
      run("hipress-sim --input model.csv --nnodes 2 --profile lab.yaml --network port --json "
          "--plan plan.txt --algorithm 'fp16'");
  REQUIRE(replayed.status == 0);
  CHECK(nlohmann::json::parse(replayed.out).at("iteration_s") ==
        nlohmann::json::parse(text.out).at("predicted_iteration_s"));
}

// ---- passes, explanations, comparisons, robust plans ----

TEST_CASE_METHOD(PlanFixture, "passes are listed, reported and left out on request", "[tool]") {
  const ToolRun listed = run("hipress-plan --list-passes");
  CHECK(listed.status == 0);
  CHECK_THAT(listed.out, Contains("more_accurate ") && Contains("unused_algorithms "));
  const std::string arguments = "--nnodes 4 --profile v100-100g --evaluations 300";
  const auto names = [&](const std::string& more) {
    const nlohmann::json passes = timeline_report(*this, arguments + more).at("passes");
    std::vector<std::string> found;
    for (const auto& pass : passes) {
      CHECK(pass.at("s").get<double>() >= 0);
      CHECK(pass.at("changed").is_boolean());
      const std::string name = pass.at("name");
      const bool for_accuracy =
          name == "more_accurate" || name == "lower_upper_end" || name == "fewer_encodings";
      CHECK(pass.at("iteration_after_s").get<double>() <=
            pass.at("iteration_before_s").get<double>() * (for_accuracy ? 1.005 : 1));
      found.push_back(pass.at("name"));
    }
    return found;
  };
  CHECK(names("") == std::vector<std::string>{"scheme", "fewer_encodings", "lower_upper_end",
                                              "more_accurate", "fewer_partitions",
                                              "unused_algorithms"});
  CHECK(names(" --disable-pass scheme,fewer_partitions") ==
        std::vector<std::string>{"fewer_encodings", "lower_upper_end", "more_accurate",
                                 "unused_algorithms"});
}

TEST_CASE_METHOD(PlanFixture, "option --explain says why of every gradient, in text and JSON",
                 "[tool]") {
  const std::string arguments =
      "hipress-plan --nnodes 4 --profile v100-100g --network port --evaluations 300 --explain ";
  const ToolRun text = run(arguments);
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, Contains("memory per node: residuals ") && Contains("runner-up") &&
                           Contains("vgg0_conv0_weight") && Contains("bound by "));
  const ToolRun json = run(arguments + "--json");
  REQUIRE(json.status == 0);
  const nlohmann::json explained = nlohmann::json::parse(json.out).at("explain");
  CHECK(explained.at("gradients").size() == 38);
  CHECK(explained.at("buffer_bytes_per_node").get<std::int64_t>() > 0);
  for (const auto& row : explained.at("gradients")) {
    CHECK(row.at("option").get<std::string>().find("K = ") != std::string::npos);
    CHECK(row.at("runner_up_cost_s").is_number());
    CHECK(row.at("done_s").get<double>() >= row.at("ready_s").get<double>());
  }
}

TEST_CASE_METHOD(PlanFixture, "explaining SeCoPa's plan leaves it as it is", "[tool]") {
  CHECK(run("hipress-plan --nnodes 4 --explain").status == 0);
  CHECK(read("SeCoPaPlan.txt") == data("secopa_vgg19_PS_4.txt"));
}

TEST_CASE_METHOD(PlanFixture, "two plans are laid side by side", "[tool]") {
  const std::string arguments = "hipress-plan --nnodes 4 --network port --plan all --compare ";
  const std::size_t before = files();
  const ToolRun same = run(arguments + "all");
  REQUIRE(same.status == 0);
  CHECK_THAT(same.out, Contains("the plans are alike"));
  const ToolRun text = run(arguments + "none");
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, Contains("38 differences") && Contains("exposed communication") &&
                           Contains("sent per node"));
  // The last gradients of backward, whose communication is exposed, make the largest differences.
  // Differences of 0, from gradients that are hidden behind others, are not listed.
  CHECK_THAT(text.out, !Contains(" 0\n"));
  const ToolRun json = run(arguments + "none --json");
  REQUIRE(json.status == 0);
  const nlohmann::json report = nlohmann::json::parse(json.out);
  const nlohmann::json& compared = report.at("compare");
  CHECK(compared.at("differences").size() == 38);
  CHECK(compared.at("first").at("iteration_s") == report.at("baselines").at("all"));
  CHECK(compared.at("second").at("iteration_s") == report.at("baselines").at("none"));
  // Raw, each of four nodes sends 2 · 3/4 of 143,667,240 fp32 numbers. Slices are whole words.
  CHECK(compared.at("second").at("bytes_sent_per_node").get<double>() ==
        Approx(1.5 * 4 * 143'667'240).epsilon(1e-3));
  CHECK(files() == before);  // a comparison makes no plan, so it writes no file
}

TEST_CASE_METHOD(PlanFixture, "a plan YAML of another topology can be compared with", "[tool]") {
  REQUIRE(run("hipress-plan --nnodes 4 --topology RING --output ring.yaml").status == 0);
  const ToolRun done = run("hipress-plan --nnodes 4 --compare ring.yaml");
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("topology") && Contains("ring"));
}

TEST_CASE_METHOD(PlanFixture, "a robust plan's percentiles are given beside the nominal one's",
                 "[tool]") {
  const std::string arguments =
      "--nnodes 4 --profile v100-100g --evaluations 200 --robust --replicas 12 --jitter "
      "lognormal:0.1 --bandwidth-uncertainty 0.3 --json --network port";
  const auto robust = [&](const std::string& more) {
    const ToolRun done = run("hipress-plan " + arguments + more);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("robust");
  };
  const nlohmann::json one = robust("");
  CHECK(one.at("robust").at("p90_s").get<double>() <= one.at("nominal").at("p90_s").get<double>());
  CHECK(one.at("nominal").at("replicas") == 12);
  CHECK(one.at("candidates").size() >= 5);
  CHECK(robust(" --jobs 2") == one);
  CHECK(robust(" --seed 1") != one);
}

TEST_CASE_METHOD(PlanFixture, "wrong requests about a plan are refused with their remedy",
                 "[tool]") {
  SECTION("unknown pass") {
    refuses("--disable-pass more_acurate", "more_acurate", "did you mean 'more_accurate'");
  }
  SECTION("a plan for nothing") { refuses("--plan all", "--plan", "--explain"); }
  SECTION("a plan and a search for one") {
    refuses("--plan all --explain --robust --jitter uniform:0.1", "--robust", "leave one");
  }
  SECTION("nothing uncertain") { refuses("--robust", "uncertain", "--jitter lognormal:0.1"); }
  SECTION("no such jitter") {
    refuses("--nnodes 2 --robust --jitter often:0.1", "often", "lognormal");
  }
  SECTION("all of the bandwidth") {
    refuses("--robust --bandwidth-uncertainty 1", "bandwidth-uncertainty", "0.99");
  }
  SECTION("a plan of which topology") {
    refuses("--plan all --topology BEST --search timeline --explain", "plan 'all'", "PS or RING");
  }
  SECTION("no such plan beside all topologies") {
    refuses("--nnodes 2 --topology BEST --search timeline --budget 0 --compare absent.yaml",
            "absent.yaml", "");
  }
  SECTION("no such plan") { refuses("--nnodes 2 --compare absent.yaml", "absent.yaml", ""); }
  SECTION("a plan for another model") {
    write("bad.txt", "conv1,y,2\n");
    const ToolRun run_ = run("hipress-plan --nnodes 2 --compare bad.txt");
    CHECK(run_.status == 2);
    CHECK_THAT(run_.err, Contains("bad.txt:1") && Contains("conv1"));
  }
}

TEST_CASE_METHOD(PlanFixture, "options about a plan that have no effect are said to have none",
                 "[tool]") {
  const ToolRun done = run("hipress-plan --jitter uniform:0.1 --replicas 5 --disable-pass scheme");
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("--jitter has no effect") && Contains("--replicas has no effect") &&
                           Contains("--disable-pass has no effect"));
}

TEST_CASE_METHOD(PlanFixture, "a plan that gathers says from which density on dense is faster",
                 "[tool]") {
  write("m.csv", "name,elements,ready_us\na,4000000,10\nb,20,20\n");
  const std::string machines = " --input m.csv --profile a100-25g --bandwidth 200Mbps";
  const ToolRun planned =
      run("hipress-plan --topology ALLGATHER --algorithm 'dgc(rho=0.01),fp16' " +
          std::string("--nnodes 8 --output p.yaml --json") + machines);
  REQUIRE(planned.status == 0);
  const nlohmann::json dense = nlohmann::json::parse(planned.out).at("dense");
  const auto above = dense.at("above").get<double>();
  CHECK(above == Approx(1.0 / 16).epsilon(0.05));
  CHECK(dense.at("algorithm") == "fp16");
  CHECK_THAT(read("p.yaml"), Contains("dense: {above: ") && Contains("algorithm: fp16, K: "));

  const auto iteration_s = [&](double density) {
    const ToolRun done =
        run(fmt::format("hipress-sim --plan p.yaml --json --density {}{}", density, machines));
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out).at("iteration_s").get<double>();
  };
  CHECK(iteration_s(above / 6) < iteration_s(above / 3));
  CHECK(iteration_s(2 * above) == iteration_s(4 * above));  // both are sent dense
  CHECK(iteration_s(0.99 * above) < iteration_s(2 * above) * 1.01);

  const ToolRun same = run("hipress-sim --plan p.yaml --density 0.01" + machines);
  CHECK_THAT(same.err, Contains("--density has no effect"));
  for (const std::string tool : {"hipress-sim", "hipress-exec"}) {
    const ToolRun refused = run(tool + " --input m.csv --plan fp16 --nnodes 2 --density 0.1");
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Contains("--density: the plan sends no gradient sparse"));
  }
}

TEST_CASE_METHOD(PlanFixture, "a plan that cannot be written is refused before the search",
                 "[tool]") {
  const auto start = std::chrono::steady_clock::now();
  refuses("--search timeline --nnodes 4 --budget 60 --output no/such/folder/plan.yaml",
          "no/such/folder/plan.yaml", "choose a folder");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE_METHOD(PlanFixture, "a failing request leaves an earlier plan as it was", "[tool]") {
  CHECK(run("hipress-plan --nnodes 4").status == 0);
  const std::string before = read("SeCoPaPlan.txt");
  CHECK(run("hipress-plan --nnodes 8 --algorithm nothing").status == 2);
  CHECK(read("SeCoPaPlan.txt") == before);
}

}  // namespace
}  // namespace hipress::planner
