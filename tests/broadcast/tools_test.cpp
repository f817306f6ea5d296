// Tests of hipress-plan --job broadcast, and of the other tools with its plans.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/planner/tool_run.hpp"

using namespace hipress::planner;
using Catch::Contains;
using Catch::StartsWith;
using Json = nlohmann::json;

namespace {

Json json_of(const ToolRun& run) {
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return Json::parse(run.out);
}

}  // namespace

TEST_CASE_METHOD(Workplace, "a broadcast is planned, simulated and replayed", "[tool]") {
  const std::string topology = GENERATE("chain", "binomial", "scatter_allgather", "best");
  const std::string algorithm = GENERATE("none", "onebit");
  CAPTURE(topology, algorithm);
  const Json plan =
      json_of(run("hipress-plan --job broadcast --bytes 100kB --nnodes 4 --root 2 "
                  "--output b.yaml --json --topology " +
                  topology + " --algorithm " + algorithm));
  CHECK(plan.at("operation") == "broadcast");
  CHECK(plan.at("root") == 2);
  CHECK(plan.at("output") == "b.yaml");
  CHECK(plan.at("proven") == true);
  const Json simulated = json_of(run("hipress-sim --plan b.yaml --json"));
  CHECK(simulated.at("iteration_s") == plan.at("predicted_s"));
  const Json replayed = json_of(run("hipress-exec --plan b.yaml --iterations 1 --warmup 0 --json"));
  CHECK(replayed.at("verified") == true);
}

TEST_CASE_METHOD(Workplace, "the report says what was chosen, and the plan which operation it is",
                 "[tool]") {
  const ToolRun done = run("hipress-plan --job broadcast --bytes 64MB --nnodes 8");
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, StartsWith("chain, uncompressed, in ") &&
                           Contains("from node 0 to 7 others") &&
                           Contains("the best of all 1414 chunk counts"));
  CHECK_THAT(read("broadcast.yaml"),
             Contains("operation: broadcast\nroot: 0\n") && Contains("topology: chain"));
}

TEST_CASE_METHOD(Workplace, "the parameters of a model are broadcast as they are", "[tool]") {
  const Json plan =
      json_of(run("hipress-plan --job broadcast --input resnet50 --nnodes 4 "
                  "--evaluations 50 --json"));
  CHECK(plan.at("tensors") == 161);
  // The model's times are those of training. In a broadcast, nothing waits for them.
  const Json simulated = json_of(run("hipress-sim --input resnet50 --plan broadcast.yaml --json"));
  CHECK(simulated.at("iteration_s") == plan.at("predicted_s"));
  CHECK(json_of(run("hipress-sim --plan broadcast.yaml --json")).at("iteration_s") ==
        simulated.at("iteration_s"));
}

TEST_CASE_METHOD(Workplace, "half precision is in the plan, and travels as such", "[tool]") {
  const Json full = json_of(run("hipress-plan --job broadcast --bytes 1MB --nnodes 4 --json"));
  const Json half = json_of(
      run("hipress-plan --job broadcast --bytes 1MB --dtype float16 --lossless --nnodes 4 --json"));
  CHECK(half.at("elements") == 500000);
  CHECK(full.at("elements") == 250000);
  CHECK_THAT(read("broadcast.yaml"), Contains("dtype: float16"));
  const Json replayed =
      json_of(run("hipress-exec --plan broadcast.yaml --iterations 1 --warmup 0 --json"));
  CHECK(replayed.at("verified") == true);
}

TEST_CASE_METHOD(Workplace, "all tools take lossless messages to be as long as the sample says",
                 "[tool]") {
  const std::string curve = "{pieces: [{from: 0, a_s: 1e-6, s_per_element: 1e-12}]}";
  const std::string codec = "encode: " + curve + ", decode: " + curve + ", decode_add: " + curve;
  write("sampled.yaml",
        "schema: hipress.profile/1\nname: sampled\nsource: measured\n"
        "hardware: {name: test, device: cpu, memory_bandwidth: 10GB/s}\n"
        "kernels:\n  measured_at: 10GB/s\n  merge: " +
            curve +
            "\n  codecs:\n"
            "    bf16: {" +
            codec + "}\n    lossless: {" + codec +
            ", message_share: 0.33}\n"
            "links: {overhead: 1us, bandwidth: 1Mbps, latency: 1us}\n...\n");
  const std::string machines = " --profile sampled.yaml --json";
  const Json plan =
      json_of(run("hipress-plan --job broadcast --bytes 100kB --dtype bfloat16 --nnodes 2 "
                  "--topology chain --algorithm lossless" +
                  machines));
  CHECK(plan.at("algorithm") == "lossless");
  const double planned_s = plan.at("predicted_s");
  CHECK(planned_s == Approx(0.53).margin(0.03));  // 0.33 of 200 kB takes 0.53 s at 1 Mbit/s
  CHECK(json_of(run("hipress-sim --plan broadcast.yaml" + machines)).at("iteration_s") ==
        planned_s);
  const Json replayed =
      json_of(run("hipress-exec --plan broadcast.yaml --iterations 1 --warmup 0" + machines));
  CHECK(replayed.at("predicted_iteration_s") == Approx(planned_s).epsilon(0.02));
  CHECK(replayed.at("verified") == true);
}

TEST_CASE_METHOD(Workplace, "several GPUs per node are a level of their own", "[tool]") {
  const std::string request = "hipress-plan --job broadcast --bytes 10MB --nnodes 4 --json";
  const Json one = json_of(run(request));
  const Json eight =
      json_of(run(request + " --gpus-per-node 8 --gpu-bandwidth 100GB/s --output g.yaml"));
  // The root's GPU scatters, and every node gathers: 2 · 7/8 · 10 MB / (100 GB/s) and fixed costs.
  const double more = eight.at("predicted_s").get<double>() - one.at("predicted_s").get<double>();
  CHECK(more >= 2 * 7.0 / 8 * 10e6 / 100e9 * 0.999);
  CHECK(eight.at("proven") == true);
  const Json simulated =
      json_of(run("hipress-sim --plan g.yaml --gpus-per-node 8 --gpu-bandwidth 100GB/s --json"));
  CHECK(simulated.at("iteration_s") == eight.at("predicted_s"));
}

TEST_CASE_METHOD(Workplace, "bad requests are refused with a remedy", "[tool]") {
  const auto refused = [&](const std::string& options, const std::string& culprit,
                           const std::string& remedy) {
    CAPTURE(options);
    const ToolRun done = run("hipress-plan " + options);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    CHECK_THAT(done.err, Contains(culprit) && Contains(remedy));
    CHECK(files() == 0);
  };
  const std::string job = "--job broadcast ";
  refused(job + "--bytes 64MB --nnodes 8 --root 8", "--root 8 is not one of the 8 nodes",
          "give one from 0 to 7");
  refused(job + "--bytes 0B --nnodes 8", "--bytes must be at least 4", "give 4B");
  refused(job + "--bytes 7B --nnodes 8", "multiple", "give 8B");
  refused(job + "--bytes 64 --nnodes 8", "--bytes", "KiB");
  refused(job + "--bytes 16B --nnodes 8 --chunks 17", "of 16 bytes, makes at most 1",
          "leave --chunks out");
  refused(job + "--bytes 1MB --nnodes 8 --lossless --algorithm onebit,fp16",
          "--lossless: onebit, fp16 changes tensors", "leave it out of --algorithm");
  refused(job + "--bytes 1MB --nnodes 8 --topology ring", "topology ring does not broadcast",
          "take one of chain, binomial, scatter_allgather, or BEST");
  refused(job + "--bytes 1MB --nnodes 8 --topology star", "unknown topology 'star'", "BEST");
  refused(job + "--bytes 1MB --nnodes 8 --topology chian", "did you mean 'chain'?", "BEST");
  refused(job + "--bytes 1MB --input vgg19", "both define the tensors to send",
          "leave one of them out");
  refused(job + "--nnodes 8", "needs --bytes", "--input");
  refused(job + "--bytes 1MB --nnodes 1", "a broadcast needs at least two nodes", "--nnodes 2");
  refused(job + "--bytes 1MB --dtype int8", "unknown dtype 'int8'", "float32");
  refused(job + "--bytes 1MB --dtype Float-32", "did you mean 'float32'?", "known are float32");
  refused(job + "--bytes 1MB --output plan.txt", "plan.txt", "--output X.yaml");
  refused(job + "--input vgg19 --compute-time 1s", "waits for no computation", "leave it out");
  refused(job + "--bytes 1MB --compute-time 1s", "waits for no computation", "leave it out");
  for (const std::string option :
       {"--schedule fsdp",     "--wrap 1M",          "--shards-by ring",
        "--gpu-memory 80GB",   "--optimizer sgd",    "--required-bandwidth",
        "--utilization 50%",   "--break-even nodes", "--advise",
        "--search timeline",   "--grouping any",     "--seed 1",
        "--disable-pass gaps", "--today ddp",        "--tolerance 0.01",
        "--write fastest",     "--coarsest fp16",    "--transfer-order need",
        "--explain",           "--plan none",        "--report r.html"}) {
    refused(job + "--bytes 1MB --nnodes 8 " + option,
            option.substr(0, option.find(' ')) + " applies to plans that average gradients",
            "take --job mean");
  }
  refused("--input vgg19 --root 1", "--root applies to --job broadcast", "leave it out");
  refused("--input vgg19 --lossless", "--lossless applies to --job broadcast", "leave");
}

TEST_CASE_METHOD(Workplace, "times of computation are refused beside a broadcast's plan",
                 "[tool]") {
  REQUIRE(run("hipress-plan --job broadcast --bytes 1kB --nnodes 4").status == 0);
  for (const std::string tool : {"hipress-sim", "hipress-exec --transport memory"}) {
    for (const std::string times : {" --compute-time 1s", " --forward 1s"}) {
      CAPTURE(tool, times);
      const ToolRun done = run(tool + " --plan broadcast.yaml" + times);
      CHECK(done.status == 2);
      CHECK_THAT(done.err, Contains("waits for no computation") && Contains("leave them out"));
    }
  }
}

TEST_CASE_METHOD(Workplace, "plans of broadcasts that are changed by hand are refused", "[tool]") {
  REQUIRE(run("hipress-plan --job broadcast --bytes 1kB --nnodes 4 --dtype bfloat16").status == 0);
  const std::string text = read("broadcast.yaml");
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& culprit, const std::string& tool = "hipress-sim") {
    CAPTURE(from, to);
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    write("b.yaml", changed.replace(at, from.size(), to));
    const ToolRun done = run(tool + " --plan b.yaml");
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("b.yaml:") && Contains(culprit));
  };
  refused("root: 0", "root: 4", "root 4 is not one of the plan's 4 nodes");
  refused("root: 0", "root: 4", "root 4 is not one of the plan's 4 nodes", "hipress-exec");
  refused("dtype: bfloat16", "dtype: int4", "unknown dtype 'int4'");
  const std::string topology = text.substr(text.find("topology: "));
  refused(topology.substr(0, topology.find('\n')), "topology: ring",
          "topology ring is for operation mean");
  CHECK_THAT(run("hipress-sim --input vgg19 --plan ddp --topology chain").err,
             Contains("topology chain broadcasts"));
  write("sweep.yaml", "model: vgg19\nplan: none\ntopology: chain\nnodes: 4\nprofile: sosp21\n");
  CHECK_THAT(run("hipress-sim sweep sweep.yaml --output s.csv").err,
             Contains("sweep.yaml:3:") && Contains("chain broadcasts"));
  CHECK_THAT(run("hipress-sim --plan none").err, Contains("--input is required"));
}
