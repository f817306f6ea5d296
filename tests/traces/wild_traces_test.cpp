// Tests of traces of other people's jobs: files that were once read wrongly, and a made-up job,
// written in as many ways as traces are. Comments derive its numbers.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "models/model.hpp"
#include "tests/traces/trace_events.hpp"
#include "traces/communication.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;

std::string said(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

struct Expected {
  const char* file;
  std::size_t gradients;
  std::int64_t elements;
  double forward_ms = 0;  ///< 0: the trace has no times
  double last_ms = 0;
  int micro_steps = 1;
  bool every_all_reduce = false;
};

TEST_CASE("files that were read wrongly are the jobs that they are of") {
  const Expected all[] = {
      {"gpu_behind.json.gz", 6, 6291456, 30, 60},
      {"empty_step.json.gz", 3, 267776, 20, 30},
      {"empty_step_gloo.json.gz", 4, 2762, 1.875, 0.2545},
      {"undefined_gradient.json.gz", 3, 786432, 20, 30},
      {"execution_undefined.json.gz", 2, 65000},
      {"execution_buckets.json.gz", 1, 65000},
      {"aiter.json.gz", 3, 3145728, 10, 30},
      {"oneccl.json.gz", 3, 3145728, 10, 30},
      {"accumulation.json.gz", 3, 3145728, 10, 30, 4},
      {"accumulation_gloo.json.gz", 4, 2762, 0.2938, 0.241, 4},
      {"generated.et", 1, 262144, 0, 0, 1, true},
  };
  for (const Expected& expected : all) {
    CAPTURE(expected.file);
    std::vector<std::string> diagnostics;
    const Imported trace =
        read_trace(std::string(HIPRESS_SOURCE_DIR "/tests/data/traces/wild/") + expected.file);
    const models::Model model =
        model_of(trace, "job", {.every_all_reduce = expected.every_all_reduce}, diagnostics).model;
    CHECK(model.gradients.size() == expected.gradients);
    CHECK(models::total_elements(model) == expected.elements);
    CHECK(model.forward_s * 1e3 == Approx(expected.forward_ms).epsilon(0.01));
    CHECK(models::backward_s(model) * 1e3 == Approx(expected.last_ms).epsilon(0.1));
    CHECK(model.micro_steps == expected.micro_steps);
  }
}

TEST_CASE("sharded jobs are no model, with the reason") {
  for (const char* file : {"fsdp1.json.gz", "fsdp2.json.gz"}) {
    std::vector<std::string> diagnostics;
    const Imported trace =
        read_trace(std::string(HIPRESS_SOURCE_DIR "/tests/data/traces/wild/") + file);
    CHECK_THROWS_WITH(model_of(trace, "job", {}, diagnostics),
                      Contains("sharded") && Contains("3 reduce-scatters") && Contains("8 ranks"));
  }
}

enum class Reduces { kLast, kEvery, kOutside, kNever, kScatters };

/// A job with three gradients, of 1000, 64 and 300 elements. On the GPU, forward takes 10 ms, each
/// gradient 10 ms, its all-reduce 8 ms, and the optimizer 2 ms.
struct Job {
  int steps = 4, micro_steps = 1;
  double lag_us = 200;        ///< from a step's start on the CPU to that on the GPU
  double period_us = 200000;  ///< from one step to the next
  bool has_shapes = true, has_sizes = true;
  std::string kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
  std::string says = "allreduce";  ///< collective that its events name; empty: none
  std::string runtime = "cuda_runtime";
  Reduces reduces = Reduces::kLast;
  bool on_one_thread = false;  ///< without a GPU, backward is on forward's thread
  int iterations = 1;          ///< per ProfilerStep
  std::vector<std::int64_t> elements = {1000, 64, 300};
  bool has_gpu = true;
};

class Writer : public TraceEvents {
 public:
  explicit Writer(Job job) : job_(std::move(job)) {
    runtime_ = job_.runtime;
    for (int step = 0; step < job_.steps; ++step) add_step(step);
  }

 private:
  void launch(const std::string& name, double length_us, int thread, int stream, double not_before,
              const json& arguments = json::object()) {
    if (!job_.has_gpu) return;
    TraceEvents::launch(name, length_us, thread, stream, not_before, arguments);
  }

  void reduce(std::int64_t size, int thread) {
    const bool scatters = job_.reduces == Reduces::kScatters;
    json arguments = {{"Group size", 8}, {"dtype", "Float"}};
    if (!job_.says.empty())
      arguments["Collective name"] = scatters ? "_reduce_scatter_base" : job_.says;
    if (job_.has_sizes) arguments["In msg nelems"] = size;
    launch(scatters ? "ncclDevKernel_ReduceScatter" : job_.kernel, 8000, thread, kCommunicates,
           compute_, arguments);
  }

  void backward(bool synchronises) {
    const int thread = job_.on_one_thread ? 1 : 2;
    for (const std::int64_t size : job_.elements) {
      add("cpu_op", kEvaluationOf + "AddmmBackward0", now_, 90, thread);
      add("cpu_op", "aten::mm", now_ + 2, 40, thread);
      now_ += 5;
      launch("gemm_backward", 10000, thread, kComputes, 0);
      now_ += 100;
      const std::vector<std::int64_t> shape(size == 1 ? 0 : 1, size);
      accumulate(thread, job_.has_shapes ? tensor(shape) : json::object());
      if (synchronises) reduce(size, thread);
      now_ += 100;
    }
  }

  void add_step(int step) {
    const double begin = 1e6 + step * job_.period_us;
    now_ = begin + 10;
    compute_ = std::max(compute_, begin + job_.lag_us);
    for (int iteration = 0; iteration < job_.iterations; ++iteration) {
      for (int micro = 0; micro < job_.micro_steps; ++micro) {
        add("cpu_op", "aten::linear", now_, 50, 1);
        now_ += 10;
        launch("gemm_forward", 10000, 1, kComputes, 0);
        now_ += 100;
        const bool last = micro + 1 == job_.micro_steps;
        backward(job_.reduces == Reduces::kEvery ||
                 (last && (job_.reduces == Reduces::kLast || job_.reduces == Reduces::kScatters)));
        now_ += 100;
      }
      if (job_.reduces == Reduces::kOutside) {
        for (const std::int64_t size : job_.elements) reduce(size, 1);
      }
      add("user_annotation", "Optimizer.step#SGD.step", now_, 50, 1);
      now_ += 5;
      launch("sgd", 2000, 1, kComputes, communication_);
      now_ += 100;
    }
    add("user_annotation", fmt::format("ProfilerStep#{}", step), begin, job_.period_us - 10, 1);
  }

  const Job job_;
};

Read read(Job job, const json& more = json::array(), ImportOptions options = {}) {
  json events = Writer(std::move(job)).events();
  for (const json& one : more) events.push_back(one);
  return read_text(text_of(events, 8), options);
}

void check_times(const models::Model& model, double forward_ms = 10) {
  CHECK(model.forward_s * 1e3 == Approx(forward_ms).epsilon(0.01));
  REQUIRE(model.gradients.size() == 3);
  for (std::size_t g = 0; g < 3; ++g) {
    CHECK(model.gradients[g].ready_s * 1e3 == Approx(10.0 * static_cast<double>(g + 1)));
  }
}

TEST_CASE("however far the GPU is behind, its times are the same") {
  // A step takes 10 + 3·10 ms; the last all-reduce adds 8 ms, and the optimizer 2 ms.
  for (const double lag_us : {100.0, 1e3, 15e3, 50e3, 120e3, 900e3}) {
    for (const double period_us : {50000.0, 55000.0, 200000.0}) {
      CAPTURE(lag_us, period_us);
      const Read got = read({.steps = 6, .lag_us = lag_us, .period_us = period_us});
      check_times(got.imported.model);
      REQUIRE(got.imported.traced);
      const models::Traced& traced = *got.imported.traced;
      CHECK(traced.compute_s * 1e3 == Approx(42).epsilon(1e-3));
      CHECK(traced.communication_s * 1e3 == Approx(24));
      CHECK(traced.exposed_communication_s * 1e3 == Approx(8).epsilon(1e-3));
      CHECK(traced.step_s == Approx(period_us * 1e-6).epsilon(0.01));
      CHECK(traced.compute_s + traced.exposed_communication_s + traced.idle_s ==
            Approx(traced.step_s).epsilon(1e-3));
    }
  }
}

TEST_CASE("accumulation is one synchronisation with its micro-steps") {
  for (const bool has_gpu : {true, false}) {
    for (const bool has_shapes : {true, false}) {
      for (const int micro_steps : {1, 2, 4}) {
        if (!has_gpu && !has_shapes) continue;  // nothing in the trace has a size
        CAPTURE(has_gpu, has_shapes, micro_steps);
        const Read got = read({.micro_steps = micro_steps,
                               .period_us = 300000,
                               .has_shapes = has_shapes,
                               .on_one_thread = !has_gpu,
                               .has_gpu = has_gpu});
        CHECK(got.imported.model.micro_steps == micro_steps);
        CHECK(models::total_elements(got.imported.model) == 1364);
        if (has_gpu) check_times(got.imported.model);
      }
    }
  }
}

TEST_CASE("gradients that are synchronised in every micro-step are one model of each") {
  const Read got = read({.micro_steps = 2, .period_us = 300000, .reduces = Reduces::kEvery});
  CHECK(got.imported.model.micro_steps == 1);
  CHECK(models::total_elements(got.imported.model) == 1364);
  CHECK_THAT(got.said, Contains("it holds 2"));
}

TEST_CASE("a ProfilerStep of several iterations is one of them") {
  const Read got = read({.period_us = 300000, .iterations = 3});
  CHECK(got.imported.model.micro_steps == 1);
  check_times(got.imported.model);
  CHECK(got.imported.traced->step_s == Approx(0.1).epsilon(0.01));
}

TEST_CASE("communication is known by what its events say, and by the names of every library") {
  const std::string generic = "void vendor::kernel_17<float>(x)";
  CHECK(read({.kernel = generic}).imported.traced->communication_s * 1e3 == Approx(24));
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "void aiter::cross_device_reduce_2stage<float, 8, false>(RankData*)",
        "void vllm::cross_device_reduce_1stage<float, 2>(x)", "oneccl_allreduce_large<float>",
        "two_shot_all_reduce_kernel", "hcom_allReduce_", "mcclKernel_AllReduce_SUM_f32",
        "void tensorrt_llm::kernels::allreduce_fusion_kernel_oneshot_lamport<float>(x)"}) {
    CAPTURE(name);
    CHECK(communication_of(name) == CollectiveKind::kAllReduce);
    const Read got = read({.kernel = name, .says = ""});
    CHECK(got.imported.traced->communication_s * 1e3 == Approx(24));
    check_times(got.imported.model);
  }
  for (const char* name : {"mscclKernel_Sum_float_Simple_false", "void rcclKernel(x)",
                           "hcclSomething", "nvshmem_barrier", "XcclKernel<int>"}) {
    CAPTURE(name);
    CHECK(communication_of(name) == CollectiveKind::kOther);
  }
  for (const char* name :
       {"ampere_sgemm_128x64_nn", "void at::native::reduce_kernel<512, 1>(x)", "flashccl_x",
        "vectorized_elementwise_kernel", "void cub::DeviceReduceKernel<float>(x)", "gemmccl_kernel",
        "wishcom_kernel"}) {
    CAPTURE(name);
    CHECK_FALSE(communication_of(name));
  }
  CHECK(communication_of("ncclDevKernel_ReduceScatter_Sum") == CollectiveKind::kReduceScatter);
  CHECK(collective_named("reduce_scatter_tensor_coalesced") == CollectiveKind::kReduceScatter);
  CHECK(collective_named("_allgather_base") == CollectiveKind::kAllGather);
  CHECK(collective_named("all_gather_into_tensor") == CollectiveKind::kAllGather);
  CHECK(collective_named("c10d::allreduce_") == CollectiveKind::kAllReduce);
  CHECK(collective_named("broadcast") == CollectiveKind::kOther);
}

TEST_CASE("a job of several ranks that shows no communication is said to be one") {
  const Read got = read({.reduces = Reduces::kNever});
  CHECK_THAT(got.said, Contains("8 ranks") && Contains("no communication"));
  const Read outside = read({.reduces = Reduces::kOutside});
  CHECK_THAT(outside.said, Contains("3 collectives") && Contains("started elsewhere"));
  check_times(outside.imported.model);
  CHECK_THROWS_WITH(read({.reduces = Reduces::kScatters}), Contains("sharded"));
}

TEST_CASE("any device's runtime launches") {
  for (const char* runtime : {"xpu_runtime", "hip_runtime", "privateuse1_driver", "cuda_driver"}) {
    CAPTURE(runtime);
    check_times(read({.runtime = runtime}).imported.model);
  }
  const Read none = read({.runtime = "something"});
  CHECK_THAT(none.said,
             Contains("correlation of a call of a runtime") && Contains("`compute_time`"));
}

TEST_CASE("steps that are empty or cut off are left out, at either end") {
  const auto step = [](const char* name, double start_us) {
    return json{{"ph", "X"}, {"cat", "user_annotation"}, {"name", name}, {"pid", 1},
                {"tid", 1},  {"ts", start_us},           {"dur", 40}};
  };
  const Read got = read({}, {step("ProfilerStep#99", 9e6), step("ProfilerStep#90", 1e5)});
  check_times(got.imported.model);
  CHECK_THAT(got.said, Contains("ProfilerStep#90 and 1 more are left out"));
  // Cut the trace off before the last gradient of the last step.
  json events = Writer({}).events();
  double last_us = 0;
  for (const json& event : events) {
    if (event["name"] == "torch::autograd::AccumulateGrad") last_us = event["ts"];
  }
  std::erase_if(events.get_ref<json::array_t&>(), [&](const json& event) {
    return event["ts"].get<double>() >= last_us - 5 && event["cat"] != "kernel";
  });
  std::vector<std::string> diagnostics;
  const Imported trace = read_trace(*stream_of(text_of(events, 8)));
  const models::Model model = model_of(trace, "job", {}, diagnostics).model;
  CHECK(model.gradients.size() == 3);
}

TEST_CASE("parameters without a gradient are none, and those without dimensions are") {
  const auto undefined = [](json arguments) {
    return json{{"ph", "X"},
                {"cat", "cpu_op"},
                {"name", "torch::autograd::AccumulateGrad"},
                {"pid", 1},
                {"tid", 1},
                {"ts", 1000500},
                {"dur", 2},
                {"args", std::move(arguments)}};
  };
  json evaluation = undefined(json::object());
  evaluation["name"] = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
  evaluation["ts"] = 1000499;
  evaluation["dur"] = 5;
  const json no_tensor = {{"Input Dims", {json::array()}}, {"Input type", {""}}};
  check_times(read({}, {evaluation, undefined(no_tensor)}).imported.model);
  // Shapes are not recorded. AccumulateGrad runs on the thread of forward and launches nothing.
  const Read got = read({.has_shapes = false}, {evaluation, undefined(json::object())});
  CHECK(got.imported.model.gradients.size() == 3);
  CHECK_THAT(got.said, Contains("another thread") && Contains("launches nothing"));
  const Read scalar = read({.elements = {1000, 1, 300}});
  CHECK(models::total_elements(scalar.imported.model) == 1301);
}

TEST_CASE("a profiler without a schedule is told what it lacks") {
  json events = Writer({}).events();
  std::erase_if(events.get_ref<json::array_t&>(), [](const json& event) {
    return event["name"].get<std::string>().starts_with("ProfilerStep");
  });
  const Imported trace = read_trace(*stream_of(text_of(events, 8)));
  CHECK_THAT(said(trace.not_told), Contains("4 steps of an optimizer") && Contains("schedule="));
}

TEST_CASE("a trace in UTF-16 is said to be in UTF-16") {
  const std::string plain = R"({"traceEvents": []})";
  for (const bool marked : {true, false}) {
    std::string text = marked ? "\xff\xfe" : "";
    for (const char one : plain) text += {one, '\0'};
    CHECK_THROWS_WITH(read_trace(*stream_of(text)), Contains("UTF-16"));
  }
}

TEST_CASE("a device that is not known is named") {
  json events = Writer({.on_one_thread = true, .has_gpu = false}).events();
  events.push_back({{"ph", "X"},
                    {"cat", "npu_events"},
                    {"name", "matmul"},
                    {"pid", 9},
                    {"tid", 1},
                    {"ts", 1e6},
                    {"dur", 10}});
  const Imported trace = read_trace(*stream_of(text_of(events, 8)));
  CHECK_THAT(said(trace.not_told), Contains("1 events are of category 'npu_events'"));
}

TEST_CASE("times that do not add up are no model") {
  Imported trace = read({}).trace;
  std::vector<std::string> diagnostics;
  const auto refusal = [&]() -> std::string {
    try {
      model_of(trace, "job", {}, diagnostics);
      return "";
    } catch (const io::Unmet& error) {
      return error.what();
    }
  };
  CHECK(refusal().empty());
  TracedStep& step = trace.steps[2];
  SECTION("forward and backward take longer than the step") {
    step.forward_s = 0.18;
    CHECK_THAT(refusal(), Contains("not conserved: of ProfilerStep#2, which takes 200ms, forward "
                                   "and backward up to the last gradient take 210ms"));
  }
  SECTION("the GPU works longer than the step") {
    step.compute_s = 0.3;
    CHECK_THAT(refusal(), Contains("of ProfilerStep#2") && Contains("idle time take"));
  }
}

}  // namespace
}  // namespace hipress::traces
