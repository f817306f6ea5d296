// Tests of imports of training jobs' traces: real ones, and small ones with derived numbers.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>

#include "io/error.hpp"
#include "models/model.hpp"
#include "models/model_file.hpp"
#include "models/traced.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/planner/tool_run.hpp"
#include "tests/traces/trace_events.hpp"
#include "traces/intervals.hpp"
#include "traces/json_trace.hpp"
#include "traces/node_trace.hpp"
#include "traces/protobuf.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;
using planner::ToolRun;
using planner::Workplace;

const std::string kResnet = "resnet50_ddp_2xa100.kineto.json.gz";
constexpr std::int64_t kResnetElements = 25'557'032;  // parameters, as published

std::string data_path(const std::string& name) {
  return std::string(HIPRESS_SOURCE_DIR "/tests/data/traces/") + name;
}

Imported trace_of(const std::string& text) { return read_trace(*stream_of(text)); }

ImportedModel model_of_text(const std::string& text, ImportOptions options = {}) {
  return read_text(text, options).imported;
}

json operation(const std::string& name, double start_us, double length_us,
               json arguments = json::object()) {
  return event("cpu_op", name, start_us, length_us, 2, std::move(arguments));
}

json call(double start_us, int correlation) {
  return event("cuda_runtime", "cudaLaunchKernel", start_us, 1, 2, {{"correlation", correlation}});
}

json kernel(const std::string& name, double start_us, double length_us, int correlation,
            json arguments = json::object()) {
  arguments["correlation"] = correlation;
  return event("kernel", name, start_us, length_us, 7, std::move(arguments), 0);
}

json all_reduce(double start_us, double length_us, int correlation, std::int64_t elements,
                const std::string& dtype = "Float") {
  return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start_us, length_us, correlation,
                {{"Collective name", "allreduce"},
                 {"In msg nelems", elements},
                 {"dtype", dtype},
                 {"Group size", 4}});
}

/// Adds a step of 1000 us, which begins at `at`. A forward kernel runs at 100-200. Backward begins
/// at 300, and its kernels at 320-420 and 500-600 each make the gradient of an AccumulateGrad. The
/// second one starts an all-reduce at 550-750. The optimizer's kernel runs at 700-720.
void add_step(json& events, double at, int number, std::int64_t elements, json shapes = {}) {
  const int id = number * 10;
  const auto arguments = [&](int gradient) {
    return shapes.is_null() ? json::object()
                            : json{{"Input Dims", json::array({shapes[gradient]})},
                                   {"Input type", json::array({"float"})}};
  };
  events.push_back(operation("ProfilerStep#" + std::to_string(number), at, 1000));
  events.push_back(operation("aten::conv", at + 90, 20));
  events.push_back(call(at + 95, id));
  events.push_back(kernel("conv", at + 100, 100, id));
  events.push_back(operation(kEvaluationOf + "ConvBackward", at + 300, 10));
  events.push_back(call(at + 305, id + 1));
  events.push_back(kernel("conv_backward", at + 320, 100, id + 1));
  events.push_back(operation(kEvaluationOf + kAccumulateGrad, at + 350, 10));
  events.push_back(operation(kAccumulateGrad, at + 351, 2, arguments(0)));
  events.push_back(operation(kEvaluationOf + kAccumulateGrad, at + 400, 30));
  events.push_back(operation(kAccumulateGrad, at + 401, 5, arguments(1)));
  events.push_back(call(at + 402, id + 2));
  events.push_back(kernel("add", at + 500, 100, id + 2));
  events.push_back(call(at + 420, id + 3));
  events.push_back(all_reduce(at + 550, 200, id + 3, elements));
  events.push_back(call(at + 640, id + 4));
  events.push_back(kernel("sgd", at + 700, 20, id + 4));
}

/// A stream that repeats `piece`, and so needs no memory for its bytes.
class Repeated : public ByteStream {
 public:
  Repeated(std::string before, std::string piece, std::int64_t bytes)
      : before_(std::move(before)), piece_(std::move(piece)), left_(bytes) {}
  std::size_t read(char* to, std::size_t most) override {
    std::size_t done = 0;
    for (; done < most && left_ > 0; ++done, --left_, ++at_) {
      to[done] =
          at_ < before_.size() ? before_[at_] : piece_[(at_ - before_.size()) % piece_.size()];
    }
    return done;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string before_, piece_;
  std::int64_t left_;
  std::size_t at_ = 0;
  std::string name_ = "junk";
};

/// Peak memory of this process so far, in MiB.
double peak_mib() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

TEST_CASE("ResNet-50's trace has its 25,557,032 elements in every step") {
  const Imported trace = read_trace(data_path(kResnet));
  CHECK(trace.events == 40'573);
  CHECK(trace.world_size == 2);
  CHECK(trace.hardware == "NVIDIA A100-PG509-200");
  REQUIRE(trace.steps.size() == 3);
  for (const TracedStep& step : trace.steps) {
    CHECK(step.collective_elements() == kResnetElements);
    CHECK(step.gradients.size() == 161);  // 53 convolutions, 53 norms with two each, two of fc
    CHECK(step.buckets.size() == 5);
  }
}

TEST_CASE("exposed communication is HTA's") {
  // HolisticTraceAnalysis reports 10.2 to 18.9 ms for this file, in steps of 220 to 225 ms.
  // Computed by hand from the unions of kernels: 10.164, 10.540 and 18.856 ms.
  const Imported trace = read_trace(data_path(kResnet));
  const double exposed_ms[] = {10.164, 10.540, 18.856}, length_ms[] = {222.442, 219.727, 224.936};
  REQUIRE(trace.steps.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(*trace.steps[i].exposed_communication_s * 1e3 == Approx(exposed_ms[i]).margin(0.001));
    CHECK(*trace.steps[i].length_s * 1e3 == Approx(length_ms[i]).margin(0.001));
  }
}

TEST_CASE("a trace becomes a model that the tools read", "[tool]") {
  const Workplace place;
  const std::string model = (place.path() / "model.yaml").string();
  const ToolRun run =
      place.run("hipress-import '" + data_path(kResnet) + "' --output model.yaml --json");
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json report = json::parse(run.out);
  CHECK(report["elements"] == kResnetElements);
  CHECK(report["gradients"] == 5);
  CHECK(report["steps"][2]["collective_elements"] == kResnetElements);
  const models::Model read = models::read_model(model);
  CHECK(models::total_elements(read) == kResnetElements);
  CHECK(read.forward_s > 0.09);
  for (std::size_t g = 1; g < read.gradients.size(); ++g) {
    CHECK(read.gradients[g - 1].ready_s < read.gradients[g].ready_s);
  }
  // Forward and backward take 183.6 ms of 222.4 ms, and 10.5 ms are exposed: 28.3 ms remain.
  CHECK(read.optimizer_s == Approx(0.0283).epsilon(0.02));
  const auto traced = models::read_traced(model);
  REQUIRE(traced);
  // Medians of the three steps above. Broadcasts of buffers take 38 us of the exposed time.
  CHECK(traced->step_s == Approx(0.222442).margin(1e-6));
  CHECK(traced->exposed_communication_s == Approx(0.010540 - 0.000039).margin(1e-6));
  CHECK(traced->other_communication_s == Approx(0.000038).margin(1e-6));

  SECTION("and the planner says how much compression can gain at the most") {
    // 10.501 / 222.442 = 4.7 %. The GPU idles for 170 ms, longer than it computes or communicates.
    const ToolRun plan = place.run("hipress-plan --input model.yaml --nnodes 2");
    CHECK(plan.status == 0);
    CHECK_THAT(plan.out, Contains("at most 4.7 % by compression"));
    CHECK_THAT(plan.out, Contains("bound by launches"));
  }
}

TEST_CASE("the documented example works as printed", "[tool]") {
  const Workplace place;
  place.write("trace.json.gz", planner::read_whole(data_path(kResnet)));
  const ToolRun run = place.run(planner::documented_example(place, "hipress-import"));
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.out, Contains("25557032") && Contains("NVIDIA A100-PG509-200, 2 ranks"));
  CHECK(place.has("model.yaml"));
}

TEST_CASE("Chakra's trace has the nodes and collectives that are in it") {
  const Imported trace = read_trace(data_path("feeder.chakra.et.gz"));
  CHECK(trace.events + 1 == 3'665);  // GlobalMetadata is not counted
  CHECK(trace.collectives == 21);
  CHECK(trace.cpu_duplicates == 14);
  std::vector<std::string> diagnostics;
  // Chakra's converter leaves AccumulateGrad out.
  CHECK_THROWS_WITH(
      model_of(trace, "job", {}, diagnostics),
      Contains("which of its 5 all-reduces carry gradients") && Contains("`every_all_reduce`"));
  const ImportedModel imported = model_of(trace, "job", {.every_all_reduce = true}, diagnostics);
  CHECK(imported.model.gradients.size() == 5);
  CHECK(models::total_elements(imported.model) == kResnetElements);
  CHECK(models::backward_s(imported.model) == 0);
  CHECK_FALSE(imported.traced);
}

TEST_CASE("PyTorch's execution trace has shapes and no times") {
  std::vector<std::string> diagnostics;
  const Imported trace = read_trace(data_path("ddp_gloo.execution.json.gz"));
  const models::Model model = model_of(trace, "job", {}, diagnostics).model;
  // Linear layers 32 to 64 and 64 to 10, in backward order: 2762 = 10 + 640 + 64 + 2048 elements.
  const std::vector<std::vector<std::int64_t>> shapes = {{10}, {10, 64}, {64}, {64, 32}};
  REQUIRE(model.gradients.size() == 4);
  for (std::size_t g = 0; g < 4; ++g) CHECK(model.gradients[g].shape == shapes[g]);
  REQUIRE(trace.steps.size() == 1);
  CHECK(trace.steps[0].collective_elements() == 2762);
  CHECK(models::backward_s(model) == 0);
}

TEST_CASE("a profiler without Kineto writes an array of events, without sizes", "[tool]") {
  const Workplace place;
  const ToolRun run = place.run("hipress-import '" + data_path("ddp_gloo.profiler.json.gz") +
                                "' --output model.yaml --json");
  CHECK(run.status == 3);
  CHECK_THAT(run.err, Contains("sizes of neither the 4 gradients"));
  CHECK_FALSE(std::filesystem::exists(place.path() / "model.yaml"));
  const json report = json::parse(run.out);
  CHECK(report["steps"].size() == 3);
  CHECK(report["elements"].is_null());
  CHECK(report["steps"][0]["compute_s"].is_null());
}

TEST_CASE("times of a step follow from its events") {
  json events;
  add_step(events, 5000, 1, 30);
  const Imported trace = trace_of(text_of(events));
  REQUIRE(trace.steps.size() == 1);
  const TracedStep& step = trace.steps[0];
  // Computation runs at 100-200, 320-420, 500-600 and 700-720, communication at 550-750. They
  // overlap for 50 + 20 us. Nothing runs for 1000 - 320 - 200 + 70 us.
  CHECK(*step.compute_s * 1e6 == Approx(320));
  CHECK(*step.communication_s * 1e6 == Approx(200));
  CHECK(*step.exposed_communication_s * 1e6 == Approx(130));
  CHECK(*step.idle_s * 1e6 == Approx(550));
  // Forward begins with its first kernel, at 100; backward with its own, at 320. The first
  // gradient's AccumulateGrad launches nothing, so the gradient is ready at 420, when its thread's
  // previous kernel ends. The second is ready when its own kernel ends, at 600.
  CHECK(*step.forward_s * 1e6 == Approx(220));
  REQUIRE(step.gradients.size() == 2);
  CHECK(*step.gradients[0].ready_s * 1e6 == Approx(100));
  CHECK(*step.gradients[1].ready_s * 1e6 == Approx(280));
  REQUIRE(step.buckets.size() == 1);
  CHECK(*step.buckets[0].ready_s * 1e6 == Approx(280));
  CHECK(trace.world_size == 4);
}

TEST_CASE("both forms of events are read, in any order and in pieces of any size") {
  json events;
  add_step(events, 0, 1, 30, {{2, 5}, {20}});
  add_step(events, 1000, 2, 30, {{2, 5}, {20}});
  const models::Model expected = model_of_text(text_of(events)).model;
  std::reverse(events.begin(), events.end());
  events.push_back(
      operation("a value that is longer than a piece " + std::string(5000, 'x'), 1, 1));
  const std::string text = events.dump(1);
  for (const std::size_t piece : {1, 7, 4096}) {
    std::vector<std::string> diagnostics;
    const models::Model model =
        model_of(read_trace(*stream_of(text, piece)), "job", {}, diagnostics).model;
    REQUIRE(model.gradients.size() == 2);
    for (std::size_t g = 0; g < 2; ++g) {
      CHECK(model.gradients[g].shape == expected.gradients[g].shape);
      CHECK(model.gradients[g].ready_s == expected.gradients[g].ready_s);
    }
  }
}

TEST_CASE("shapes give single gradients, which must have the buckets' elements") {
  json events;
  add_step(events, 0, 1, 30, {{2, 5}, {20}});
  const models::Model model = model_of_text(text_of(events)).model;
  REQUIRE(model.gradients.size() == 2);
  CHECK(model.gradients[0].elements == 10);
  CHECK(model.gradients[0].shape == std::vector<std::int64_t>{2, 5});
  CHECK(model.gradients[1].elements == 20);
  json other;
  add_step(other, 0, 1, 31, {{2, 5}, {20}});
  CHECK_THROWS_WITH(model_of_text(text_of(other)),
                    Contains("not conserved") && Contains("have 30 elements") && Contains("31"));
}

TEST_CASE("elements are the same in all steps, or there is no model") {
  json events;
  add_step(events, 0, 1, 30);
  add_step(events, 1000, 2, 29);
  CHECK_THROWS_WITH(model_of_text(text_of(events)),
                    Contains("ProfilerStep#1 have 30 elements, those of ProfilerStep#2 29"));
  CHECK_THROWS_AS(model_of_text(text_of(events)), io::Unmet);
}

TEST_CASE("what a trace does not tell is refused by name") {
  json events;
  add_step(events, 0, 1, 30);
  SECTION("a type that is not planned") {
    for (json& event : events) {
      if (event["args"].contains("dtype")) event["args"]["dtype"] = "Double";
    }
    CHECK_THROWS_WITH(model_of_text(text_of(events)), Contains("bucket0 is of type 'float64'"));
  }
  SECTION("no sizes") {
    for (json& event : events) event["args"].erase("In msg nelems");
    CHECK_THROWS_WITH(model_of_text(text_of(events)), Contains("sizes of neither the 2 gradients"));
  }
  SECTION("no backward") {
    json rest;
    for (const json& event : events) {
      if (event["name"].get<std::string>().find("autograd") == std::string::npos) {
        rest.push_back(event);
      }
    }
    CHECK_THROWS_WITH(model_of_text(text_of(rest)), Contains("no AccumulateGrad"));
  }
  SECTION("no steps") {
    json rest;
    for (const json& event : events) {
      if (event["name"] != "ProfilerStep#1") rest.push_back(event);
    }
    CHECK_THROWS_WITH(model_of_text(text_of(rest)), Contains("the start of its steps"));
    rest.push_back(operation("Optimizer.step#SGD.step", 900, 10));
    CHECK(models::total_elements(model_of_text(text_of(rest)).model) == 30);
  }
  SECTION("gradients that travel otherwise") {
    for (json& event : events) {
      if (event["args"].contains("Collective name")) {
        event["args"]["Collective name"] = "_reduce_scatter_base";
      }
    }
    CHECK_THROWS_WITH(model_of_text(text_of(events)),
                      Contains("sharded") && Contains("1 reduce-scatters"));
  }
}

TEST_CASE("without a GPU gradients are ready when AccumulateGrad ends") {
  const json events = {operation("ProfilerStep#1", 0, 100),
                       operation(kEvaluationOf + "AddmmBackward0", 20, 10),
                       operation(kEvaluationOf + kAccumulateGrad, 40, 20),
                       operation(kAccumulateGrad, 41, 4,
                                 {{"Input Dims", json::array({json::array({3, 4})})},
                                  {"Input type", json::array({"c10::Half"})}})};
  const ImportedModel imported = model_of_text(text_of(events));
  REQUIRE(imported.model.gradients.size() == 1);
  CHECK(imported.model.gradients[0].ready_s * 1e6 == Approx(25));  // backward runs from 20 to 45
  CHECK(imported.model.forward_s * 1e6 == Approx(20));
  CHECK(imported.model.gradients[0].dtype == models::Dtype::kFloat16);
  CHECK_FALSE(imported.traced);
}

/// Adds a step that begins at `at`. Its hook submits a bucket of `bytes` in the first
/// AccumulateGrad, at 40-60, and another one at 70-90, where it also waits for both.
void add_planned_step(json& events, double at, std::int64_t bytes) {
  const auto range = [](const std::string& what, std::int64_t size) {
    return fmt::format("hipress::{}(bucket=0, bytes={}, dtype=float32, ranks=2)", what, size);
  };
  events.push_back(operation("ProfilerStep#1", at, 100));
  events.push_back(operation(kEvaluationOf + "AddmmBackward0", at + 20, 10));
  events.push_back(operation(kEvaluationOf + kAccumulateGrad, at + 40, 20));
  events.push_back(operation(kAccumulateGrad, at + 41, 4));
  events.push_back(operation(range("submit", bytes), at + 46, 10));
  events.push_back(operation(kEvaluationOf + kAccumulateGrad, at + 70, 20));
  events.push_back(operation(kAccumulateGrad, at + 71, 4));
  events.push_back(operation(range("submit", 16), at + 76, 1));
  events.push_back(operation(range("wait", 16), at + 78, 11));
}

TEST_CASE("what the hook of a plan submits is a bucket, and its wait is exposed communication") {
  json events;
  add_planned_step(events, 0, 40);
  SECTION("without a GPU") {
    const Imported trace = trace_of(text_of(events));
    REQUIRE(trace.steps.size() == 1);
    const TracedStep& step = trace.steps[0];
    REQUIRE(step.buckets.size() == 2);
    CHECK(step.buckets[0].elements == 10);
    CHECK(step.buckets[1].elements == 4);
    CHECK(step.collective_elements() == 14);
    CHECK(trace.world_size == 2);
    // Backward begins at 20. The first gradient is ready at 45. The second is ready at 75, but the
    // first one's hook took 10 of that.
    REQUIRE(step.gradients.size() == 2);
    CHECK(*step.gradients[0].ready_s * 1e6 == Approx(25));
    CHECK(*step.gradients[1].ready_s * 1e6 == Approx(45));
    // Communication takes from the first submit, at 46, to the end of the wait, at 89. Training
    // waits during 11 of that.
    CHECK(*step.communication_s * 1e6 == Approx(43));
    CHECK(*step.exposed_communication_s * 1e6 == Approx(11));
    CHECK_FALSE(step.compute_s.has_value());
    const ImportedModel imported = model_of_text(text_of(events));
    REQUIRE(imported.model.gradients.size() == 2);
    CHECK(imported.model.gradients[0].name == "bucket0");
    CHECK(imported.model.gradients[1].ready_s * 1e6 == Approx(45));
  }
  SECTION("with a GPU that computes meanwhile") {
    events.push_back(call(50, 1));
    events.push_back(kernel("sgd", 60, 20, 1));
    const Imported trace = trace_of(text_of(events));
    REQUIRE(trace.steps.size() == 1);
    CHECK(trace.steps[0].collective_elements() == 14);
    CHECK(*trace.steps[0].communication_s * 1e6 == Approx(43));
    CHECK(*trace.steps[0].exposed_communication_s * 1e6 == Approx(23));
  }
  SECTION("with bytes that are no number") {
    events[4]["name"] = "hipress::submit(bucket=0, bytes=many, dtype=float32, ranks=2)";
    CHECK_THROWS_WITH(model_of_text(text_of(events)), Contains("sizes of neither the 2 gradients"));
  }
}

TEST_CASE("a job that trains with a plan has its gradients and buckets in its trace", "[tool]") {
  const Workplace place;
  const ToolRun run = place.run("hipress-import '" + data_path("planned_gloo.kineto.json.gz") +
                                "' --output model.yaml --json");
  REQUIRE(run.status == 0);
  const json report = json::parse(run.out);
  // The linear layers 24 -> 512 -> 512 -> 5 have 12 288 + 512 + 262 144 + 512 + 2 560 + 5 elements.
  CHECK(report["elements"] == 278'021);
  CHECK(report["gradients"] == 6);
  CHECK(report["world_size"] == 2);
  REQUIRE(report["steps"].size() == 3);
  for (const json& step : report["steps"]) {
    CHECK(step["collective_elements"] == 278'021);
    CHECK(step["exposed_communication_s"] > 0);
    CHECK(step["communication_s"] >= step["exposed_communication_s"]);
    CHECK(step["communication_s"] < step["step_s"]);
  }
  const models::Model model = models::read_model((place.path() / "model.yaml").string());
  REQUIRE(model.gradients.size() == 6);
  const std::vector<std::vector<std::int64_t>> shapes = {{5},        {5, 512}, {512},
                                                         {512, 512}, {512},    {512, 24}};
  double last_s = 0;
  for (std::size_t g = 0; g < 6; ++g) {
    std::vector<std::int64_t> shape = model.gradients[g].shape;
    CHECK(std::ranges::is_permutation(shape, shapes[g]));
    CHECK(model.gradients[g].ready_s >= last_s);
    last_s = model.gradients[g].ready_s;
  }
  // Ready times exclude the hook of the first bucket and the wait.
  CHECK(last_s < report["steps"][0]["step_s"].get<double>());
  CHECK(model.forward_s > 0);
}

TEST_CASE("what is no trace is refused with the reason") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CAPTURE(text.substr(0, 60));
    CHECK_THROWS_AS(trace_of(text), io::InputError);
    CHECK_THROWS_WITH(trace_of(text), Contains(why));
  };
  refused("", "is empty");
  refused("{}", "neither 'traceEvents' nor 'nodes'");
  refused("[]", "none of its events is PyTorch's");
  refused(R"({"nodes": []})", "none of its nodes is PyTorch's");
  refused(R"([{"ph":"X","name":"aten::add","ts":"soon","dur":1}])", "must be microseconds");
  refused("name: vgg19\ngradients:\n", "is a model or a plan, and no trace");
  refused("\x02\x03\x03\x01", "neither JSON nor a Chakra execution trace");
  refused("[{\"ph\":\"X\",\n \"name\" \"aten::add\"}]", "memory:2: is no JSON at byte");
  refused(std::string(100, '['), "nested deeper than 64 levels");
  json events;
  add_step(events, 0, 1, 30);
  const std::string whole = text_of(events);
  refused(whole.substr(0, whole.size() / 2), "the trace was cut off");
}

TEST_CASE("files that are cut off or damaged are refused", "[tool]") {
  const Workplace place;
  const std::string packed = planner::read_whole(data_path(kResnet));
  place.write("half.gz", packed.substr(0, packed.size() / 2));
  std::string damaged = packed;
  damaged[damaged.size() - 8] ^= 1;  // the file ends with the checksum and the size
  place.write("sum.gz", damaged);
  place.write("plan.txt", "fc6,4096,y,2\n");
  for (const auto& [name, why] : {std::pair("half.gz", "cut off"),
                                  {"sum.gz", "gzip data is damaged"},
                                  {"plan.txt", "is a plan, and no trace"},
                                  {"none", "no such file"}}) {
    const ToolRun run = place.run(fmt::format("hipress-import {} --output model.yaml", name));
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Contains(name) && Contains(why));
  }
  CHECK_FALSE(std::filesystem::exists(place.path() / "model.yaml"));
}

TEST_CASE("models by name are written as they are read by name") {
  const tests::TemporaryFolder folder;
  for (const std::string& name : models::model_names()) {
    CAPTURE(name);
    const models::Model named = models::read_model(name);
    std::ostringstream text;
    write_model_yaml(text, {.model = named, .traced = {}});
    const models::Model read = models::read_model(folder.file("model.yaml", text.str()));
    CHECK(std::tie(read.name, read.batch, read.unit, read.positions) ==
          std::tie(named.name, named.batch, named.unit, named.positions));
    CHECK(read.forward_s == Approx(named.forward_s));
    REQUIRE(read.gradients.size() == named.gradients.size());
    for (std::size_t g = 0; g < read.gradients.size(); ++g) {
      const models::Gradient &one = read.gradients[g], &other = named.gradients[g];
      REQUIRE(std::tie(one.name, one.elements, one.shape, one.work, one.layer) ==
              std::tie(other.name, other.elements, other.shape, other.work, other.layer));
      REQUIRE(one.ready_s == Approx(other.ready_s));
    }
  }
}

TEST_CASE("a model is imported by its name, and unknown names get near ones", "[tool]") {
  const Workplace place;
  const ToolRun run = place.run("hipress-import llama3_8b --output model.yaml");
  INFO(run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.out, Contains("model by name"));
  // Llama 3 8B has 8,030,261,248 parameters, as published.
  CHECK(models::total_elements(models::read_model((place.path() / "model.yaml").string())) ==
        8'030'261'248);
  for (const auto& [name, near] :
       {std::pair("llama3_9b", "near ones: llama3_8b"), {"qwen2.5_0.6b", "qwen2.5_0.5b"}}) {
    const ToolRun refused = place.run(fmt::format("hipress-import {} --output other.yaml", name));
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Contains("no model has that name") && Contains(near));
  }
}

TEST_CASE("500 MB of junk take little memory") {
  constexpr std::int64_t kBytes = 500'000'000;
  const std::string event = R"({"ph":"i","name":"x","ts":1,"args":{"a":[1,2,3]}},)";
  const std::string message = delimited(std::string("\x12\x02\x0a\x00", 4));
  const double before_mib = peak_mib();
  const auto refused = [&](Repeated junk) { CHECK_THROWS_AS(read_trace(junk), io::InputError); };
  refused({"", std::string(1, '\0'), kBytes});
  refused({"", "x", kBytes});
  refused({"[\"", "x", kBytes});
  refused({"[", " ", kBytes});
  refused({"", "[", kBytes});
  refused({"{\"traceEvents\":[", "1234567890", kBytes});
  refused({"[", event, 20'000'000});  // all of these bytes are read
  refused({message, "\xff", kBytes});
  refused({message, "\x7f", kBytes});
  // The parser holds the longest value, 16 MiB; sanitizers also keep memory that was freed.
  CHECK(peak_mib() - before_mib < 300);
}

TEST_CASE("microseconds become nanoseconds without a rounding") {
  CHECK(nanoseconds("4458676522690.655") == 4'458'676'522'690'655);
  CHECK(nanoseconds("1716423323123456.789") == 1'716'423'323'123'456'789);
  CHECK(nanoseconds("7") == 7000);
  CHECK(nanoseconds("7.1239") == 7123);
  CHECK(nanoseconds("-1.5") == -1500);
  CHECK(nanoseconds("1.5e3") == 1'500'000);
  for (const char* text : {"", "x", "1.x", "1e30", "99999999999999999999", ".5x"}) {
    CAPTURE(text);
    CHECK_FALSE(nanoseconds(text));
  }
}

TEST_CASE("shapes are read as Python writes them") {
  using Shape = std::vector<std::int64_t>;
  CHECK(first_shape("[[[2049000]], [], []]") == Shape{2'049'000});
  CHECK(first_shape("[[2048, 1000]]") == Shape{2048, 1000});
  for (const char* text : {"", "[]", "[[], [64]]", "[['x']]", "64", "[[64"}) {
    CAPTURE(text);
    CHECK((first_shape(text).empty() || std::string(text) == "[[64"));
  }
}

TEST_CASE("sets of times are merged, cut and subtracted") {
  const TimeSet set(std::vector<Interval>{{30, 40}, {0, 10}, {5, 20}, {20, 22}, {7, 7}});
  CHECK(set.length() == 32);  // 0-22 and 30-40
  CHECK(set.within({21, 35}).length() == 6);
  CHECK(set.within({22, 30}).length() == 0);
  CHECK(length_outside(set, TimeSet(std::vector<Interval>{{10, 32}})) == 18);  // 0-10 and 32-40
}

TEST_CASE("Protobuf's fields are read, and what is none is refused") {
  FieldWriter writer;
  writer.integer(1, UINT64_MAX);
  writer.bytes(2, "text");
  const std::uint64_t numbers[] = {0, 300};
  writer.packed(5, numbers);
  FieldReader reader(writer.message());
  CHECK(reader.next()->integer == UINT64_MAX);
  CHECK(reader.next()->bytes == "text");
  std::vector<std::uint64_t> read;
  append_numbers(*reader.next(), read);
  CHECK(read == std::vector<std::uint64_t>{0, 300});
  CHECK_FALSE(reader.next());
  for (const std::string bad : {"\x08", "\x12\x05text", "\x0b", "\x0d\x01", "\x80\x80"}) {
    FieldReader broken(bad);
    CHECK_THROWS_AS(broken.next(), io::InputError);
  }
}

TEST_CASE("a model is read as it was written, with its optimizer and micro-steps") {
  ImportedModel imported;
  imported.model.name = "x";
  imported.model.forward_s = 1.5e-3;
  imported.model.optimizer_s = 0.25e-3;
  imported.model.micro_steps = 4;
  imported.model.gradients = {{.name = "a", .elements = 6, .ready_s = 2e-3, .shape = {2, 3}}};
  std::ostringstream out;
  write_model_yaml(out, imported);
  const tests::TemporaryFolder folder;
  const models::Model read = models::read_model(folder.file("x.yaml", out.str()));
  CHECK(read.forward_s == 1.5e-3);
  CHECK(read.optimizer_s == 0.25e-3);
  CHECK(read.micro_steps == 4);
  CHECK(read.gradients.at(0).ready_s == 2e-3);
}

TEST_CASE("kernels of known libraries say what they compute") {
  using enum models::ComputeClass;
  struct Row {
    const char* name;
    std::optional<models::ComputeClass> what;
  };
  const Row rows[] = {
      {"sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4", kGemm},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(Params)", kGemm},
      {"ampere_sgemm_32x128_nt", kGemm},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", kGemm},
      {"Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1_SN", kGemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>(Params)", kGemm},
      {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_f32_nhwckrsc_nhwc", kGemm},
      {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>()", kGemm},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>()", kAttention},
      {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<…cutlass::half_t>()", kAttention},
      {"fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::…)", kAttention},
      {"void at::native::vectorized_elementwise_kernel<4, BinaryFunctor>()", kElementwise},
      {"void at::native::unrolled_elementwise_kernel<batch_norm_calc_invstd>()", kElementwise},
      {"void at::native::multi_tensor_apply_kernel<…, FusedAdamMathFunctor>()", kElementwise},
      {"void split_embedding_backward_codegen<fbgemm_gpu::FixedDivisor>()", kElementwise},
      {"triton_poi_fused_native_layer_norm_add_3", kElementwise},
      {"void cudnn::ops::nchwToNhwcKernel<float, float>()", kElementwise},
      {"void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps>>()", kReduction},
      {"void (anonymous namespace)::softmax_warp_forward<float, float>()", kReduction},
      {"void at::native::multi_tensor_apply_kernel<…, LpNormFunctor<float>>()", kReduction},
      {"void at::native::max_pool_backward_nchw<float, float>()", kReduction},
      {"triton_per_fused_sum_1", kReduction},
      {"void at::native::vectorized_layer_norm_kernel<float, float>()", kNorm},
      {"triton_per_fused_native_layer_norm_2", kNorm},
      {"void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512>()", kNorm},
      {"void at::native::batch_norm_transform_input_channels_last_kernel<half>()", kNorm},
      {"void at::native::GammaBetaBackwardCUDAKernel<float, float>()", kNorm},
      {"my_kernel", std::nullopt},
      {"triton__0d1d2d", std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(class_of_kernel(row.name) == row.what);
  }
}

/// A step with further kernels of these names and lengths in microseconds. Its own kernels have no
/// known class and take 320 us.
json with_kernels(const std::vector<std::pair<std::string, double>>& kernels) {
  json events;
  add_step(events, 5000, 1, 30, {{2, 5}, {20}});
  int correlation = 1000;
  for (const auto& [name, length_us] : kernels) {
    events.push_back(call(5950, correlation));
    events.push_back(kernel(name, 5960, length_us, correlation++));
  }
  return events;
}

TEST_CASE("kernels' names make a model's mix, weighted by their times") {
  std::vector<std::string> diagnostics;
  const auto imported = [&](const json& events) {
    diagnostics.clear();
    return model_of(trace_of(text_of(events)), "job", {}, diagnostics).model.mix;
  };
  const auto said = [&](const std::string& what) {
    return std::ranges::any_of(
        diagnostics, [&](const std::string& one) { return one.find(what) != std::string::npos; });
  };
  // Kernels of known classes take 400 + 200 + 200 us, others 320 us: 320/1120 is 28.6 %.
  CHECK(imported(with_kernels({{"a_gemm", 400}, {"layer_norm_a", 200}, {"softmax_a", 200}})) ==
        models::Mix{0.5, 0, 0, 0.25, 0.25});
  CHECK(
      said("28.6 % of the computation's time have names without a known class, most of it 'add'"));
  CHECK(said("the mix leaves them out"));
  // If most kernels have no known class, there is no mix.
  CHECK_FALSE(imported(with_kernels({{"a_gemm", 300}})).has_value());
  CHECK(said("51.6 % of the computation's time"));
  CHECK(said("add one by hand"));
}

TEST_CASE("ResNet-50's mix has its norms, and is written into the model", "[tool]") {
  // Computed by hand from all kernels of the trace but NCCL's (docs/traces.md).
  const Workplace place;
  const ToolRun run =
      place.run("hipress-import '" + data_path(kResnet) + "' --output model.yaml --json");
  const json report = json::parse(run.out);
  CHECK(report["mix"] == json{{"gemm", 0.357},
                              {"attention", 0.0},
                              {"elementwise", 0.351},
                              {"reduction", 0.021},
                              {"norm", 0.271}});
  CHECK(report["mix_unrecognised_share"].get<double>() < 0.005);
  CHECK(models::read_model((place.path() / "model.yaml").string()).mix ==
        models::Mix{0.357, 0, 0.351, 0.021, 0.271});
}

TEST_CASE("without kernels of a GPU nothing is said of a mix", "[tool]") {
  const Workplace place;
  const ToolRun run = place.run("hipress-import '" + data_path("planned_gloo.kineto.json.gz") +
                                "' --output model.yaml --json");
  CHECK_FALSE(json::parse(run.out).contains("mix"));
  CHECK(planner::read_whole((place.path() / "model.yaml").string()).find("mix") ==
        std::string::npos);
}

TEST_CASE("a model's key 'traced' is checked") {
  const Workplace place;
  const auto refused = [&](const std::string& traced, const std::string& why) {
    place.write("model.yaml",
                "name: job\ntraced: {" + traced + "}\ngradients:\n- {name: a, elements: 4}\n");
    CHECK_THROWS_WITH(models::read_model((place.path() / "model.yaml").string()), Contains(why));
  };
  const std::string rest = "compute: 1ms, communication: 1ms, exposed_communication: 1ms, idle: 0s";
  refused("steps: 3, step: 0s, " + rest, "must be longer than 0");
  refused("steps: 3, step: 500us, " + rest, "must be at most the step");
  refused("steps: 0, step: 5ms, " + rest, "steps");
  refused("steps: 3, step: 5ms, hidden: 1ms, " + rest, "hidden");
  refused("steps: 3, " + rest, "step");
}

}  // namespace
}  // namespace hipress::traces
