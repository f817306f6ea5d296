// Tests that traces and models have the same sums, for jobs of every kind. A made-up job runs in
// many ways, and comments derive its times and bytes.

#include "traces/accounting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "models/model.hpp"
#include "models/traced.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/traces/trace_events.hpp"
#include "traces/communication.hpp"
#include "traces/intervals.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;

/// A collective that carries no gradients. It takes 3 ms, all of them exposed.
struct Sent {
  std::string name;
  std::int64_t elements = 0;
  int ranks = 8;
  std::string dtype = "Float";
};

/// A job with three gradients, of 1000 x 40, 64 and 300 elements. On the GPU, forward takes 10 ms,
/// each gradient 10 ms, and each all-reduce 8 ms; only the last all-reduce is exposed. The
/// optimizer follows, and a pause until the next step.
struct Job {
  int windows = 4, micro_steps = 1;  ///< micro-steps per step
  bool window_per_micro_step = false, steps_in_next_window = false;
  int first_micro_step = 0;  ///< micro-step that begins the trace
  double optimizer_us = 20000, pause_us = 0;
  std::vector<std::vector<std::int64_t>> shapes = {{1000, 40}, {64}, {300}};
  bool has_shapes = true, has_world_size = true, has_optimizer_name = true;
  std::string gradient_dtype = "float", sent_dtype = "Float", by = "allreduce";
  std::vector<std::int64_t> sent = {};  ///< elements of all-reduces; none: as the gradients
  std::vector<int> ranks = {8, 8, 8};
  std::vector<Sent> in_forward = {}, in_backward = {}, behind = {};
  bool synchronises = true, steps_every_window = false, has_product = false;
  std::string forward_kernel = "gemm", backward_kernel = "gemm";
};

class Writer : public TraceEvents {
 public:
  explicit Writer(Job job) : job_(std::move(job)) {
    compute_ = communication_ = 1e6;
    const int windows = job_.window_per_micro_step ? job_.windows : job_.windows * job_.micro_steps;
    double begin = 1e6;
    now_ = begin + 10;
    for (int i = 0; i < windows; ++i) {
      const int micro = (job_.first_micro_step + i) % job_.micro_steps;
      micro_step(micro + 1 == job_.micro_steps);
      const bool ends = job_.window_per_micro_step || micro + 1 == job_.micro_steps;
      if (!ends) continue;
      const double end = std::max(compute_, communication_) + job_.pause_us;
      add("user_annotation", fmt::format("ProfilerStep#{}", step_++), begin, end - begin - 10, 1);
      begin = end;
      now_ = begin + 10;
      compute_ = communication_ = begin;
    }
  }

  std::string text() const { return text_of(all_, job_.has_world_size ? 8 : 0); }

 private:
  void send(const Sent& one, int thread, double length_us) {
    launch("ncclDevKernel_X", length_us, thread, kCommunicates, compute_,
           {{"Collective name", one.name},
            {"In msg nelems", one.elements},
            {"Out msg nelems", one.elements},
            {"Group size", one.ranks},
            {"Process Group Name", std::to_string(one.ranks)},
            {"dtype", one.dtype}});
  }

  /// Sends collectives for which computation waits.
  void send_all(const std::vector<Sent>& all, int thread) {
    for (const Sent& one : all) {
      send(one, thread, 3000);
      compute_ = std::max(compute_, communication_);
    }
  }

  void optimizer() {
    if (job_.has_optimizer_name) {
      add("user_annotation", "Optimizer.step#AdamW.step", now_, 50, 1);
    }
    now_ += 5;
    compute_ = std::max(compute_, communication_);
    launch("adam", job_.optimizer_us, 1, kComputes, 0);
    send_all(job_.behind, 1);
    now_ += 100;
  }

  void micro_step(bool last) {
    if (owes_optimizer_) optimizer();
    owes_optimizer_ = false;
    add("cpu_op", "aten::linear", now_, 50, 1);
    now_ += 10;
    launch(job_.forward_kernel, 10000, 1, kComputes, 0);
    send_all(job_.in_forward, 1);
    now_ += 100;
    for (std::size_t g = 0; g < job_.shapes.size(); ++g) backward(g, last && job_.synchronises);
    now_ += 100;
    if (!last && !job_.steps_every_window) return;
    owes_optimizer_ = job_.steps_in_next_window;
    if (!owes_optimizer_) optimizer();
  }

  void backward(std::size_t g, bool sends) {
    add("cpu_op", kEvaluationOf + "AddmmBackward0", now_, 40, 2);
    now_ += 5;
    launch(job_.backward_kernel, 10000, 2, kComputes, 0);
    if (g == 0) send_all(job_.in_backward, 2);
    now_ += 40;
    std::int64_t size = 1;
    for (const std::int64_t dimension : job_.shapes[g]) size *= dimension;
    accumulate(2, job_.has_shapes ? tensor(job_.shapes[g], job_.gradient_dtype) : json::object());
    if (job_.has_product) add("cpu_op", "aten::bmm", now_, 2, 2);
    if (!job_.sent.empty()) size = job_.sent[g];
    if (sends) send({job_.by, size, job_.ranks[g], job_.sent_dtype}, 2, 8000);
    now_ += 100;
  }

  const Job job_;
  int step_ = 5;
  bool owes_optimizer_ = false;
};

Read read(const Job& job) { return read_text(Writer(job).text()); }

/// Requires that forward, backward, optimizer and exposed communication add up to the traced step.
void check_step(const Read& read) {
  const models::Model& model = read.model();
  const double made_s = models::before_backward_s(model) + models::backward_s(model) +
                        read.traced().exposed_communication_s;
  CHECK(made_s == Approx(read.traced().step_s).epsilon(0.005));
}

constexpr std::int64_t kElements = 40000 + 64 + 300;

TEST_CASE("what a step does beside forward, backward and averaging is the model's optimizer") {
  for (const double optimizer_us : {2000.0, 20000.0, 90000.0}) {
    for (const double pause_us : {0.0, 15000.0}) {
      CAPTURE(optimizer_us, pause_us);
      const Read got = read({.optimizer_us = optimizer_us, .pause_us = pause_us});
      CHECK(got.model().optimizer_s * 1e6 == Approx(optimizer_us + pause_us).epsilon(0.01));
      // 10 ms for forward, 3 times 10 ms for backward, and 8 ms for the last all-reduce.
      CHECK(got.traced().step_s * 1e6 == Approx(48000 + optimizer_us + pause_us).epsilon(0.001));
      CHECK(got.traced().exposed_communication_s * 1e3 == Approx(8));
      check_step(got);
    }
  }
}

TEST_CASE("windows of micro-batches are one step") {
  for (const int micro_steps : {2, 3, 5}) {
    for (const bool has_shapes : {true, false}) {
      for (const bool has_optimizer_name : {true, false}) {
        for (const bool in_next : {true, false}) {
          CAPTURE(micro_steps, has_shapes, has_optimizer_name, in_next);
          const Read got = read({.windows = 3 * micro_steps,
                                 .micro_steps = micro_steps,
                                 .window_per_micro_step = true,
                                 .steps_in_next_window = in_next,
                                 .has_shapes = has_shapes,
                                 .has_optimizer_name = has_optimizer_name});
          CHECK(got.model().micro_steps == micro_steps);
          CHECK(models::total_elements(got.model()) == kElements);
          REQUIRE(got.trace.steps.size() == 3);
          CHECK(got.trace.steps[0].name == fmt::format("ProfilerStep#5-{}", 4 + micro_steps));
          // A micro-step takes 40 ms; the optimizer and the last all-reduce take 28 ms.
          CHECK(got.traced().step_s * 1e3 == Approx(40 * micro_steps + 28).epsilon(0.01));
          CHECK(got.traced().exposed_communication_s * 1e3 == Approx(8).epsilon(0.01));
          CHECK_THAT(got.said,
                     Contains(fmt::format("of {} windows, 3 have a synchronisation: a step is {}",
                                          3 * micro_steps, micro_steps)));
          if (has_optimizer_name || !in_next) check_step(got);
        }
      }
    }
  }
}

TEST_CASE("a trace may begin and end in the middle of an accumulation") {
  // A step has 3 windows. Windows 0 and 1 end one step, and windows 8 and 9 begin another.
  const Read got =
      read({.windows = 10, .micro_steps = 3, .window_per_micro_step = true, .first_micro_step = 1});
  CHECK(got.model().micro_steps == 3);
  REQUIRE(got.trace.steps.size() == 2);
  CHECK(got.trace.steps[0].name == "ProfilerStep#7-9");
  CHECK_THAT(got.said, Contains("4 windows of steps that are not whole are left out"));
  check_step(got);
}

TEST_CASE("without a whole step among windows of micro-batches there is no model") {
  // The first window ends a step. The other three begin the next one.
  CHECK_THROWS_WITH(
      read({.windows = 4, .micro_steps = 4, .window_per_micro_step = true, .first_micro_step = 3}),
      Contains("profiler.step() is called in every micro-batch") &&
          Contains("of 4 windows, 1 has a synchronisation") && Contains("no step"));
}

TEST_CASE("windows of one rank's micro-batches end with its optimizer's steps") {
  const Read got =
      read({.windows = 9, .micro_steps = 3, .window_per_micro_step = true, .synchronises = false});
  CHECK(got.model().micro_steps == 3);
  CHECK_THAT(got.said, Contains("of 9 windows, 3 have an optimizer's step"));
  CHECK(got.traced().exposed_communication_s == 0);
  check_step(got);
}

TEST_CASE("windows that step apart are local updates") {
  CHECK_THROWS_WITH(
      read({.windows = 8,
            .micro_steps = 4,
            .window_per_micro_step = true,
            .steps_every_window = true}),
      Contains("6 step an optimizer without a synchronisation") && Contains("local SGD"));
}

TEST_CASE("accumulation in one window adds up, too") {
  const Read got = read({.micro_steps = 4});
  CHECK(got.model().micro_steps == 4);
  CHECK(got.model().optimizer_s * 1e3 == Approx(20).epsilon(0.01));
  check_step(got);
}

TEST_CASE("a type that gradients are narrowed to is said, with bytes") {
  struct Row {
    std::string sent, dtype;
    std::int64_t bytes;
  };
  for (const Row& row :
       {Row{"Half", "float16", 2}, {"BFloat16", "bfloat16", 2}, {"Byte", "uint8", 1}}) {
    CAPTURE(row.sent);
    const Read got = read({.sent_dtype = row.sent});
    CHECK(got.model().gradients.front().dtype == models::Dtype::kFloat32);
    CHECK(got.imported.account.sent_dtype == row.dtype);
    CHECK(got.imported.account.steps.back().sent_bytes == row.bytes * kElements);
    CHECK(got.imported.account.model_bytes == 4 * kElements);
    CHECK_THAT(got.said, Contains("already sends its gradients in") && Contains(row.dtype));
    CHECK((got.said.find("half precision") != std::string::npos) == (row.bytes == 2));
  }
  const Read same = read({});
  CHECK_THAT(same.said, !Contains("already sends"));
  // Without shapes, the trace only tells the buckets' type.
  const Read untold = read({.has_shapes = false, .sent_dtype = "Half"});
  CHECK(untold.imported.account.sent_dtype == "float16");
  CHECK(untold.imported.account.steps.back().sent_bytes == 2 * kElements);
  CHECK_THAT(untold.said, Contains("may be float32 that a hook"));
}

TEST_CASE("collectives have as many bytes as their type") {
  struct Row {
    std::string written, name;
    std::int64_t bytes;
  };
  for (const Row& row : {Row{"Float", "float32", 4},
                         {"Double", "float64", 8},
                         {"Half", "float16", 2},
                         {"Long", "int64", 8},
                         {"Int", "int32", 4},
                         {"Short", "int16", 2},
                         {"Char", "int8", 1},
                         {"Byte", "uint8", 1},
                         {"Bool", "bool", 1},
                         {"ComplexFloat", "complex64", 8},
                         {"ComplexDouble", "complex128", 16},
                         {"Float8_e5m2", "float8_e5m2", 1},
                         {"long int", "int64", 8},
                         {"Tensor(long int)", "int64", 8},
                         {"GenericList[Tensor(bool),Tensor(bool)]", "bool", 1},
                         {"unsigned char", "uint8", 1},
                         {"c10::complex<double>", "complex128", 16},
                         {"c10::BFloat16", "bfloat16", 2}}) {
    CAPTURE(row.written);
    CHECK(dtype_of(row.written) == row.name);
    CHECK(bytes_of_type(row.name) == row.bytes);
    const Read got = read({.in_forward = {{"allreduce", 1000, 8, row.written}}});
    CHECK(got.imported.other.bytes == 1000 * row.bytes);
    CHECK(got.imported.averages.bytes == 4 * kElements);
  }
  CHECK(dtype_of("QInt8") == "QInt8");
  CHECK(bytes_of_type("QInt8") == 0);
}

TEST_CASE("collectives on a CPU have the types and sizes of their calls") {
  // gloo's range has the type of a list of tensors; the call of two tensors has the output's size.
  struct Row {
    std::string call, range, type;
    json shapes;
    std::int64_t bytes;
  };
  for (const Row& row :
       {Row{"allreduce_", "all_reduce", "long int", {{{500}}}, 8 * 500},
        {"broadcast_", "broadcast", "bool", {{{500}}}, 500},
        {"broadcast_", "broadcast", "long int", {{{500}}}, 8 * 500},
        {"alltoall_base_", "all_to_all", "long int", {{300}, {700}}, 8 * 700},
        {"alltoall_base_", "all_to_all", "int", {{700}, {300}}, 4 * 700},
        {"allreduce_coalesced_", "all_reduce", "double", {{{20}, {3, 10}}}, 400}}) {
    CAPTURE(row.call, row.type);
    const bool is_list = row.shapes.size() == 1;
    json events = json::array();
    const auto add = [&](const std::string& name, double at_us, int thread, const json& arguments) {
      events.push_back(event("cpu_op", name, at_us, 4, thread, arguments));
    };
    add("aten::linear", 4, 1, {});
    add(kEvaluationOf + kAccumulateGrad, 20, 1, {});
    add(kAccumulateGrad, 21, 1, tensor({64}));
    add("c10d::" + row.call, 9, 1,
        {{"Input Dims", row.shapes}, {"Input type", {is_list ? "TensorList" : row.type}}});
    std::int64_t elements = 0;
    for (const json& shape : is_list ? row.shapes[0] : json{row.shapes[1]}) {
      std::int64_t product = 1;
      for (const json& dimension : shape) product *= dimension.get<std::int64_t>();
      elements += product;
    }
    add("gloo:" + row.range, 12, 3, tensor({elements}, row.type));
    events.push_back(event("user_annotation", "ProfilerStep#1", 0, 100, 1));
    const Read got = read_text(text_of(events, 2));
    CHECK(got.imported.other.count == 1);
    CHECK(got.imported.other.bytes == row.bytes);
    CHECK(got.imported.other.time_s.value() * 1e6 == Approx(4));
  }
}

enum class Form { kRange, kParameters, kShapes, kOperator };

/// Moves the descriptions of collectives from their kernels to calls around the launches.
json described_by_calls(json events, Form form) {
  const json kernels = events;
  for (json& kernel : events) {
    if (!kernel["args"].contains("Collective name")) continue;
    const json said = kernel["args"];
    const auto launch = std::ranges::find_if(kernels, [&](const json& one) {
      return one["cat"] == "cuda_runtime" && one["args"]["correlation"] == said["correlation"];
    });
    const bool reduces = said["Collective name"] == "allreduce";
    kernel["name"] =
        reduces ? "ncclKernel_AllReduce_RING_LL_Sum_float(x)" : "ncclKernel_SendRecv(x)";
    kernel["args"] = {{"correlation", said["correlation"]}};
    const std::int64_t elements = said["In msg nelems"];
    const auto add = [&](const std::string& category, const std::string& name, json arguments) {
      json call = *launch;
      call.update({{"cat", category}, {"name", name}, {"args", std::move(arguments)}});
      return call;
    };
    const json call = [&] {
      switch (form) {
        case Form::kRange:
          return add("user_annotation", reduces ? "nccl:all_reduce" : "nccl:all_to_all",
                     tensor({elements}));
        case Form::kParameters:
          return add("cpu_op", "record_param_comms", said);
        case Form::kShapes:
          return add("cpu_op", "record_param_comms", tensor({elements}));
        default:
          return add("cpu_op", reduces ? "c10d::allreduce_" : "c10d::alltoall_base_",
                     {{"Input Dims", json::array({json::array({json{elements}})})},
                      {"Input type", {"TensorList"}}});
      }
    }();
    kernel["call"] = call;
  }
  json all = json::array();
  for (json& event : events) {
    if (event.contains("call")) all.push_back(event["call"]);
    event.erase("call");
    all.push_back(event);
  }
  return all;
}

TEST_CASE("sizes of collectives are those of the calls that launch them") {
  const Job job = {.in_forward = {{"all_to_all", 5000}}};
  for (const Form form : {Form::kRange, Form::kParameters, Form::kShapes, Form::kOperator}) {
    CAPTURE(static_cast<int>(form));
    const Read got = read_text(text_of(described_by_calls(Writer(job).events(), form), 8));
    CHECK(got.imported.averages.count == 3);
    CHECK(got.imported.averages.bytes == 4 * kElements);
    CHECK(got.imported.other.count == 1);
    CHECK(got.imported.other.bytes == 4 * 5000);
    CHECK(got.trace.steps.back().collective_elements() == kElements);
    CHECK(got.model().gradients.size() == 3);
    // In each of the 4 steps, 3 ms are exposed.
    CHECK_THAT(got.said, Contains("3ms is exposed in the median of 4 steps"));
    // A bucket without 50 of a gradient's 300 elements does not hold whole gradients.
    Job differs = job;
    differs.sent = {40000, 64, 250};
    CHECK_THROWS_WITH(read_text(text_of(described_by_calls(Writer(differs).events(), form), 8)),
                      Contains("not conserved") && Contains("40364") && Contains("40314"));
  }
}

TEST_CASE("a call describes one launch, and collectives without sizes have no bytes") {
  json events = described_by_calls(Writer({}).events(), Form::kRange);
  const json before = events;
  for (const json& one : before) {
    if (one["name"] != "nccl:all_reduce") continue;
    json launch = one;
    launch.update({{"cat", "cuda_runtime"}, {"name", "launch"}, {"dur", 1}});
    launch["ts"] = one["ts"].get<double>() + 1;
    launch["args"] = {{"correlation", 90000 + events.size()}};
    events.push_back(launch);
    events.push_back(event("kernel", "ncclKernel_Broadcast(x)", 9e5, 1, 20, launch["args"]));
  }
  for (json& one : events) {
    // The kernel starts after the one of the first launch.
    if (one["name"] == "ncclKernel_Broadcast(x)") one["ts"] = 2e6;
  }
  const Read got = read_text(text_of(events, 8));
  CHECK(got.imported.averages.bytes == 4 * kElements);
  CHECK(got.imported.other.bytes == 0);
  json silent = Writer({.in_forward = {{"all_to_all", 5000}}}).events();
  for (json& one : silent) {
    if (one["args"].value("Collective name", "") != "all_to_all") continue;
    one["args"].erase("In msg nelems");
    one["args"].erase("Out msg nelems");
  }
  CHECK_THAT(read_text(text_of(silent, 8)).said, Contains("carry no gradients but other data") &&
                                                     Contains("does not tell") && !Contains("0B"));
}

TEST_CASE("gradients that are averaged in a wider type are of that type") {
  const Read got = read({.gradient_dtype = "c10::BFloat16"});
  CHECK(got.model().gradients.front().dtype == models::Dtype::kFloat32);
  CHECK(got.imported.account.model_bytes == got.imported.account.steps.back().sent_bytes);
  CHECK_THAT(got.said,
             Contains("3 of 3 gradients have half precision and are averaged in float32"));
}

TEST_CASE("only the groups of gradients count in ranks and in what can be gained") {
  const Job plain = {.ranks = {2, 2, 2}};
  const std::vector<Job> jobs = {
      {.ranks = {2, 2, 2}, .in_forward = {{"allreduce", 50000, 4}, {"allreduce", 50000, 4}}},
      {.ranks = {2, 2, 2}, .in_backward = {{"allreduce", kElements, 4}}},
      {.ranks = {2, 2, 2}, .in_forward = {{"send", 50000, 2}}, .in_backward = {{"recv", 50000, 2}}},
      {.ranks = {2, 2, 2}, .in_forward = {{"_allgather_base", 8000, 2}}},
      {.ranks = {2, 2, 2}, .behind = {{"allreduce", 1, 8}}},
  };
  for (const Job& job : jobs) {
    const Read got = read(job);
    CAPTURE(got.said);
    CHECK(got.imported.account.ranks == 2);
    CHECK_THAT(got.said, Contains("averaged among 2 of the 8 ranks") && Contains("2 nodes"));
    CHECK(got.traced().exposed_communication_s * 1e3 == Approx(8));
    CHECK(got.traced().other_communication_s * 1e3 ==
          Approx(3.0 * static_cast<double>(job.in_forward.size() + job.in_backward.size() +
                                           job.behind.size()))
              .margin(0.02));
    CHECK_THAT(got.said, Contains("carry no gradients"));
    CHECK_THAT(models::most_gain(got.traced()), Contains("more is exposed, but carries no"));
    CHECK(models::total_elements(got.model()) == kElements);
    check_step(got);
  }
  CHECK(read(plain).traced().other_communication_s == 0);
  // Groups of other collectives do not show the number of ranks.
  Job silent = jobs.front();
  silent.has_world_size = false;
  CHECK(read(silent).trace.world_size == 2);
}

TEST_CASE("a map of the parameters that were used is no gradient") {
  // DDP sends the map as integers, from the last AccumulateGrad.
  json events = Writer({.has_shapes = true}).events();
  const json before = events;
  int correlation = 5000;
  for (json event : before) {
    if (event["name"] != "ncclDevKernel_X" || event["args"]["In msg nelems"] != 300) continue;
    const auto launch = std::ranges::find_if(before, [&](const json& one) {
      return one["cat"] == "cuda_runtime" &&
             one["args"]["correlation"] == event["args"]["correlation"];
    });
    json call = *launch;
    call["args"]["correlation"] = ++correlation;
    call["ts"] = call["ts"].get<double>() + 1;
    event["args"].update({{"correlation", correlation}, {"In msg nelems", 3}, {"dtype", "Int"}});
    event["ts"] = event["ts"].get<double>() + event["dur"].get<double>();
    event["dur"] = 5;
    events.push_back(call);
    events.push_back(event);
  }
  const Read got = read_text(text_of(events));
  CHECK(models::total_elements(got.model()) == kElements);
  CHECK(got.imported.averages.count == 3);
  CHECK(got.imported.other.count == 1);
}

TEST_CASE("gradients of several groups are said to be") {
  const Read got = read({.ranks = {8, 2, 2}});
  CHECK(got.imported.account.ranks == 8);
  CHECK_THAT(got.said, Contains("among 2 and 8 ranks"));
}

TEST_CASE("gradients that travel otherwise than by all-reduce are no model") {
  for (const char* name : {"reduce", "all_to_all", "broadcast", "gather"}) {
    CHECK_THROWS_WITH(read({.by = name}),
                      Contains("travel by") && Contains(name) && Contains("ZeRO-1 and -2"));
  }
  // These are collectives after backward, as in 1-bit optimizers and in ZeRO without hooks.
  for (const char* name : {"all_to_all", "reduce", "_allgather_base"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(read({.behind = {{name, kElements}}, .synchronises = false}),
                      Contains("averaged in another way") && Contains(name));
  }
  // All-reduces after backward carry the gradients if they have as many elements. A norm does not.
  const Read late =
      read({.behind = {{"allreduce", kElements}, {"allreduce", 1}}, .synchronises = false});
  CHECK_THAT(late.said, Contains("started elsewhere, and 2 of them carry the gradients"));
  CHECK(late.traced().exposed_communication_s * 1e3 == Approx(6).margin(0.02));
  check_step(late);
  // All-reduces of activations carry no gradients, so compression cannot gain anything.
  const Read alone = read({.in_forward = {{"allreduce", kElements}}, .synchronises = false});
  CHECK(alone.traced().exposed_communication_s == 0);
}

TEST_CASE("factors of low rank are named as what all-reduces carry") {
  // With rank 4, 64 + 300 elements are sent uncompressed. P and Q together have 4 * (1000 + 40) =
  // 4160 elements, and P alone has 4000.
  CHECK_THROWS_WITH(read({.sent = {4160, 64, 300}}), Contains("PowerSGD of rank 4"));
  CHECK_THROWS_WITH(read({.sent = {4000, 64, 300}}), Contains("PowerSGD of rank 4"));
  CHECK_THROWS_WITH(read({.sent = {123, 64, 300}}),
                    Contains("have 40364 elements") && Contains("487") && Contains("hook"));
  CHECK_THROWS_WITH(read({.has_shapes = false, .sent = {4160, 64, 300}, .has_product = true}),
                    Contains("PowerSGD"));
  CHECK_THROWS_WITH(read({.sent = {50000, 64, 300}}),
                    Contains("not conserved") && !Contains("hook"));
}

TEST_CASE("models that are trained in turn are no model") {
  // One window has the events of two jobs with different gradients.
  json events = Writer({.windows = 1}).events();
  json other = Writer({.windows = 1, .shapes = {{7, 3}, {9}}, .ranks = {8, 8}}).events();
  double end = 0;
  for (const json& event : events) {
    if (event["name"] == "ProfilerStep#5") {
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
  }
  for (json event : other) {
    if (event["name"] == "ProfilerStep#5") continue;
    event["ts"] = event["ts"].get<double>() + end - 1e6;
    if (event["args"].contains("correlation")) {
      event["args"]["correlation"] = event["args"]["correlation"].get<int>() + 1000;
    }
    events.push_back(event);
  }
  for (json& event : events) {
    if (event["name"] == "ProfilerStep#5") event["dur"] = 1e6;
  }
  CHECK_THROWS_WITH(read_text(text_of(events)), Contains("trained in turn") &&
                                                    Contains("3 and 2 gradients") &&
                                                    Contains("GAN"));
}

TEST_CASE("kernels that Inductor or PyTorch made compute, whatever their names hold") {
  for (const char* name :
       {"triton_poi_fused_all_reduce_0", "triton_red_fused_add_all_reduce_mul_1",
        "triton_per_fused__to_copy_reduce_scatter_2",
        "triton_poi_fused_all_to_all_single_clone_permute_view_0",
        "triton_for_fused_all_gather_into_tensor_3", "triton_poi_fused_nccl_0",
        "void at::native::elementwise_kernel<4, AllReduceFunctor<float> >(int)",
        "void at::native::(anonymous namespace)::all_reduce_like<float>(x)", "small_gather_kernel",
        "wallreduce", "void overall_reduce<float>(x)", "void my::fused_kernel<AllGatherOp>(x)"}) {
    CAPTURE(name);
    CHECK_FALSE(communication_of(name));
    const Read got = read({.forward_kernel = name, .backward_kernel = name});
    CHECK(got.model().forward_s * 1e3 == Approx(10).epsilon(0.01));
    CHECK(models::backward_s(got.model()) * 1e3 == Approx(30));
    CHECK(got.traced().exposed_communication_s * 1e3 == Approx(8));
  }
  for (const char* name : {"ncclDevKernel_AllReduce_Sum_f32", "NCCLAllReduceKernel",
                           "void vllm::cross_device_reduce_1stage<float, 2>(x)",
                           "_ZN5aiter26cross_device_reduce_2stageIfEEv", "_allgather_base",
                           "two_shot_all_reduce_kernel"}) {
    CAPTURE(name);
    CHECK(communication_of(name));
  }
}

TEST_CASE("recorded jobs of PyTorch over gloo are what they are") {
  const auto imported = [](const std::string& name) {
    return read(
        read_trace(fmt::format("{}/tests/data/traces/wild/{}.json.gz", HIPRESS_SOURCE_DIR, name)));
  };
  // The model's linear layers, 64 to 128 and 128 to 10, have 8192 + 128 + 1280 + 10 elements.
  const Read windows = imported("windows_gloo");
  CHECK(windows.imported.averages.count == 1);
  CHECK(windows.imported.averages.bytes == 4 * 9610);
  CHECK(models::total_elements(windows.model()) == 9610);
  CHECK(windows.model().micro_steps == 3);
  REQUIRE(windows.trace.steps.size() == 2);
  CHECK(windows.trace.steps[1].name == "ProfilerStep#9-11");
  // A step consists of 3 forward and backward passes, of waiting for gloo, and of the rest.
  std::vector<double> steps_s, exposed_s;
  for (const TracedStep& step : windows.trace.steps) {
    steps_s.push_back(step.length_s.value());
    exposed_s.push_back(step.modelled_exposed_s.value());
  }
  CHECK(models::before_backward_s(windows.model()) + models::backward_s(windows.model()) +
            median(exposed_s) ==
        Approx(median(steps_s)));
  const Read half = imported("half_gloo");
  CHECK(half.imported.account.sent_dtype == "float16");
  CHECK(half.imported.account.steps.back().sent_bytes == 2 * 9610);
  CHECK(half.model().gradients.front().dtype == models::Dtype::kFloat32);
  CHECK_THROWS_WITH(imported("in_turn_gloo"),
                    Contains("4, 4 and 8 gradients") && Contains("trained in turn"));
  // PowerSGD sends the biases, 138 elements, uncompressed. The trace lacks its factors.
  CHECK_THROWS_WITH(imported("powersgd_gloo"), Contains("carry them 138") && Contains("PowerSGD"));
}

TEST_CASE("accounts that do not add up are refused or said") {
  const StepAccount step = {.name = "step",
                            .step_s = 0.1,
                            .forward_s = 0.03,
                            .backward_s = 0.04,
                            .exposed_s = 0.01,
                            .sent_bytes = 1000};
  CHECK(rest_s(step).value() == Approx(0.02));
  const auto said = [](const JobAccount& job) {
    std::vector<std::string> sentences;
    check_accounts(job, sentences);
    std::string text;
    for (const std::string& one : sentences) text += one + "\n";
    return text;
  };
  JobAccount job = {.steps = {step, step},
                    .job_ranks = 4,
                    .ranks = 4,
                    .model_bytes = 1000,
                    .dtype = "float32",
                    .sent_dtype = "float32"};
  CHECK(said(job).empty());
  SECTION("times") {
    job.steps[0].backward_s = 0.08;
    CHECK_THROWS_WITH(said(job), Contains("step, which takes 100ms") && Contains("take 110ms"));
  }
  SECTION("exposed communication within backward") {
    job.steps[0].exposed_s = 0.05;
    CHECK_THAT(said(job), Contains("take 70ms, and exposed communication 50ms"));
    CHECK(rest_s(job.steps[0]) == 0.0);
  }
  SECTION("bytes") {
    job.schedule = "fsdp(reshard=false)";
    job.model_bytes = 5300;
    CHECK_THAT(said(job), Contains("sends 1kB in step") && Contains("5.3kB") &&
                              Contains("with fsdp(reshard=false)") && Contains("5.3 times"));
  }
  SECTION("ranks") {
    job.job_ranks = 16;
    CHECK_THAT(said(job), Contains("among 4 of the 16 ranks") && Contains("simulate 4 nodes"));
  }
  SECTION("a step that does not synchronise") {
    job.steps[1].synchronises = false;
    CHECK_THROWS_WITH(said(job), Contains("not sent") || Contains("are not"));
  }
  SECTION("a step that sends other bytes") {
    job.steps[0].sent_bytes = 900;
    CHECK_THAT(said(job), Contains("sends 1kB") && Contains("900B"));
  }
}

TEST_CASE("exposed communication of others is read from a model as it was written") {
  const Read got = read({.in_forward = {{"allreduce", 50000, 4}}});
  std::ostringstream out;
  write_model_yaml(out, got.imported);
  const tests::TemporaryFolder folder;
  const auto traced = models::read_traced(folder.file("x.yaml", out.str()));
  CHECK(traced.value().other_communication_s * 1e3 == Approx(3));
  CHECK(models::read_model(folder.path("x.yaml")).optimizer_s == Approx(got.model().optimizer_s));
}

}  // namespace
}  // namespace hipress::traces
