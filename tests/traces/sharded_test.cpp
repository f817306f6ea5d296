// Tests of traces of jobs that shard their parameters. The jobs are made up, written as FSDP1,
// FSDP2, HSDP and DeepSpeed's ZeRO would write them, and comments derive their numbers.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "models/model.hpp"
#include "tests/planner/tool_run.hpp"
#include "tests/traces/trace_events.hpp"
#include "traces/sharded_ranges.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;
using planner::ToolRun;
using planner::Workplace;

enum class Style { kFsdp1, kFsdp2, kPlain };
enum class Order { kPre, kPost, kNone };

/// A job on 8 ranks. On the GPU, every layer takes 10 ms in forward and 20 ms in backward. A gather
/// takes 4 ms, a reduction 6 ms, a mean over replicas 2 ms, and the optimizer 5 ms. The CPU is
/// ahead of the GPU.
struct Job {
  Style style = Style::kFsdp2;
  int steps = 3, micro_steps = 1;
  bool every_micro_step_reduces = false, window_per_micro_step = false;
  std::vector<std::int64_t> elements = {4000, 8000, 8000, 8000};  ///< in forward order
  bool reshard = true;  ///< the first layer, the root, stays whole
  Order order = Order::kPre;
  double gather_us = 4000;
  int ranks = 8, shards = 8;
  std::string gathered = "Float", reduced = "Float";
  bool has_groups = true, separate_groups = false, has_sizes = true;
  bool clips = false, reports = false, evaluates = false, is_cut_off = false;
  bool has_tensor_parallelism = false;
  std::string without = {};  ///< argument that collectives lack
};

class Writer : public TraceEvents {
 public:
  explicit Writer(Job job) : job_(std::move(job)) {
    for (int step = 0; step < job_.steps; ++step) add_step(step);
  }

  std::string text() const { return text_of(all_, job_.ranks); }

 private:
  double collective(const std::string& kernel, const std::string& name, std::int64_t in,
                    std::int64_t out, const std::string& dtype, int group_size,
                    const std::string& group, double length_us, double not_before, int thread) {
    json arguments = {{"Collective name", name}, {"Group size", group_size}, {"dtype", dtype}};
    if (job_.has_groups) arguments["Process Group Name"] = group;
    if (job_.has_sizes) {
      arguments["In msg nelems"] = in;
      arguments["Out msg nelems"] = out;
    }
    arguments.erase(job_.without);
    return launch("ncclDevKernel_" + kernel + "_RING_LL", length_us, thread, kCommunicates,
                  not_before, arguments);
  }

  static std::string in_brackets(std::size_t layer) {
    return layer == 0 ? "" : fmt::format(" (blocks.{})", layer - 1);
  }

  /// Name of FSDP's range around a gather or reduction.
  std::string range(std::size_t layer, bool gathers, int thread) const {
    if (job_.style == Style::kFsdp2) {
      return (gathers ? "FSDP::all_gather" : "FSDP::post_backward_reduce") + in_brackets(layer);
    }
    if (!gathers) return "FullyShardedDataParallel._post_backward_hook";
    return thread == 1 ? "FullyShardedDataParallel._pre_forward"
                       : "FullyShardedDataParallel._pre_backward_prefetch";
  }

  void gather(std::size_t layer, int thread) {
    const double begin = now_;
    now_ += 1;
    const std::int64_t whole = job_.elements[layer];
    gathered_[layer] = collective("AllGather", "_allgather_base", whole / job_.shards, whole,
                                  job_.gathered, job_.shards, "1", job_.gather_us, 0, thread);
    if (job_.style != Style::kPlain) {
      add("user_annotation", range(layer, true, thread), begin, now_ - begin, thread);
      now_ += 1;
    }
  }

  void reduce(std::size_t layer) {
    const double begin = now_;
    now_ += 1;
    const std::int64_t whole = job_.elements[layer];
    if (job_.style == Style::kFsdp2) {
      const json shapes = json::array({json::array({whole / 8, 4}), json::array({whole / 2})});
      add("cpu_op", "aten::_chunk_cat", now_, 1, 2,
          {{"Input Dims", json::array({shapes, json::array(), json::array()})}});
      now_ += 2;
    }
    const std::int64_t shard = whole / job_.shards;
    double end = collective("ReduceScatter", "_reduce_scatter_base", whole, shard, job_.reduced,
                            job_.shards, job_.separate_groups ? "3" : "1", 6000, compute_, 2);
    if (job_.shards < job_.ranks) {
      end = collective("AllReduce", "allreduce", shard, shard, job_.reduced,
                       job_.ranks / job_.shards, "2", 2000, end, 2);
    }
    if (job_.style != Style::kPlain) {
      add("user_annotation", range(layer, false, 2), begin, now_ - begin, 2);
      now_ += 1;
    }
    reduced_ = end;
  }

  void exchange_activations(const std::string& kernel, const std::string& name, int thread) {
    if (!job_.has_tensor_parallelism) return;
    const bool gathers = kernel == "AllGather";
    compute_ = collective(kernel, name, gathers ? 1000 : 8000, gathers ? 8000 : 1000, "Float", 8,
                          "9", 500, compute_, thread);
  }

  void forward() {
    for (std::size_t layer = 0; layer < job_.elements.size(); ++layer) {
      if (needs_gather_) gather(layer, 1);
      exchange_activations("AllGather", "_allgather_base", 1);
      for (int op = 0; op < 6; ++op) add("cpu_op", "aten::linear", now_ += 2, 1, 1);
      launch("gemm_forward", 10000, 1, kComputes, gathered_[layer]);
      exchange_activations("ReduceScatter", "_reduce_scatter_base", 1);
      now_ += 20;
    }
  }

  void evaluate(const std::string& function, double begin) {
    add("cpu_op", kEvaluationOf + function, begin, now_ - begin, 2);
    now_ += 1;
  }

  bool gathers_again(std::size_t layer) const { return job_.reshard && layer > 0; }

  void backward(bool reduces) {
    if (gathers_again(job_.elements.size() - 1)) gather_in("PreBackward", job_.elements.size() - 1);
    for (std::size_t layer = job_.elements.size(); layer-- > 0;) {
      const bool gathers = layer > 0 && gathers_again(layer - 1);
      if (gathers && job_.order == Order::kPre) gather_in("PreBackward", layer - 1);
      double begin = now_;
      now_ += 1;
      launch("gemm_backward", 20000, 2, kComputes, gathered_[layer]);
      evaluate("AddmmBackward0", begin);
      begin = now_;
      now_ += 1;
      if (gathers && job_.order == Order::kPost) gather(layer - 1, 2);
      if (reduces) reduce(layer);
      if (job_.style == Style::kFsdp1) {
        add("cpu_op", kAccumulateGrad, begin + 0.1, 0.5, 2, tensor({job_.elements[layer] - 1}));
        evaluate(kAccumulateGrad, begin);
      } else {
        evaluate("RegisterPostBackwardFunctionBackward", begin);
      }
      if (gathers && job_.order == Order::kNone) gather_in("PreBackward", layer - 1);
    }
  }

  void gather_in(const std::string& function, std::size_t layer) {
    const double begin = now_;
    now_ += 1;
    gather(layer, 2);
    evaluate(function, begin);
  }

  void report() {
    collective("AllGather", "_allgather_base", 1, 8, "Float", job_.ranks, "0", 10, compute_, 1);
    collective("Broadcast", "broadcast", 7, 7, "Long", job_.ranks, "0", 10, 0, 1);
  }

  void add_step(int step) {
    const double begin = 1e6 + step * 1e6;
    now_ = begin + 10;
    gathered_.assign(job_.elements.size(), 0);
    const bool ends_early = job_.is_cut_off && step + 1 == job_.steps;
    std::vector<double> begins;
    for (int micro = 0; micro < job_.micro_steps; ++micro) {
      begins.push_back(micro == 0 ? begin : now_);
      needs_gather_ = job_.reshard || micro == 0;
      forward();
      if (!ends_early) backward(job_.every_micro_step_reduces || micro + 1 == job_.micro_steps);
      now_ += 50;
    }
    if (job_.clips) {
      collective("AllReduce", "allreduce", 1, 1, "Float", job_.ranks, "0", 10, compute_, 1);
    }
    if (job_.reports) report();
    if (!ends_early) {
      add("user_annotation", "Optimizer.step#AdamW.step", now_, 10, 1);
      launch("adam", 5000, 1, kComputes, reduced_);
    }
    now_ += 50;
    if (job_.evaluates) forward();
    if (!job_.window_per_micro_step) begins = {begin};
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const double end = i + 1 < begins.size() ? begins[i + 1] : begin + 1e6 - 10;
      const std::size_t number = static_cast<std::size_t>(step) * begins.size() + i;
      add("user_annotation", fmt::format("ProfilerStep#{}", number), begins[i], end - begins[i], 1);
    }
  }

  const Job job_;
  std::vector<double> gathered_;  // time at which each layer is gathered
  double reduced_ = 0;
  bool needs_gather_ = true;
};

Read read(const Job& job) { return read_text(Writer(job).text()); }

/// Layers of the trace in forward order: name, elements, gathers in forward + backward, and ready
/// time in ms, such as "root 4000 1+0 ready 80".
std::string layers_of(const Read& read) {
  std::string text;
  const auto& layers = read.sharding().layers;
  for (std::size_t i = layers.size(); i-- > 0;) {
    text += fmt::format("{} {} {}+{} ready {:.0f}; ", layers[i].name, layers[i].elements,
                        layers[i].forward_gathers, layers[i].backward_gathers,
                        layers[i].ready_s.value_or(0) * 1e3);
  }
  return text;
}

TEST_CASE("layers of FSDP2 have names, gradients without padding, and computation's times") {
  const Read one = read({});
  CHECK(one.sharding().schedule == "fsdp(reshard=true, prefetch=pre)");
  CHECK(layers_of(one) ==
        "root 4000 1+0 ready 80; blocks.0 8000 1+1 ready 60; blocks.1 8000 1+1 ready 40; "
        "blocks.2 8000 1+1 ready 20; ");
  CHECK(one.model().forward_s == Approx(0.040));
  // The optimizer has the rest of a step of 1 s; 10 ms of communication are exposed.
  CHECK(one.model().optimizer_s == Approx(1 - 0.04 - 0.08 - 0.01).epsilon(1e-4));
  CHECK(models::total_elements(one.model()) == 28000);
  // A layer of 8000 has two gradients, of 1000 rows of 4 and of 4000.
  CHECK(one.model().gradients.front().name == "blocks.2.gradient0");
  CHECK(one.model().gradients.front().layer == "blocks.2");
  CHECK(one.model().gradients.front().shape == std::vector<std::int64_t>{1000, 4});
  // There are 7 gathers of 4 ms and 4 reductions of 6 ms. Only those of the root are exposed: its
  // gather, and its reduction after the last backward pass. Computation hides the others.
  CHECK(one.sharding().all_gather.count == 7);
  CHECK(one.sharding().all_gather.bytes == 4 * (28000 + 24000));
  CHECK(one.sharding().all_gather.time_s.value() == Approx(0.028));
  CHECK(one.sharding().all_gather.exposed_s.value() == Approx(0.004));
  CHECK(one.sharding().reduce_scatter.bytes == 4 * 28000);
  CHECK(one.sharding().reduce_scatter.exposed_s.value() == Approx(0.006));
}

TEST_CASE("gradients that fill a reduction's buffer are the layer's") {
  // Shapes [7, 3] and [5] on 4 ranks: first dimensions are padded to 8, so 24 + 8 elements are
  // sent.
  json events = json::parse(Writer({.steps = 1, .elements = {32}, .ranks = 4, .shards = 4}).text());
  for (json& event : events["traceEvents"]) {
    if (event["name"] != "aten::_chunk_cat") continue;
    event["args"]["Input Dims"] = json::parse("[[[7, 3], [5]], [], []]");
  }
  const Read one = read_text(events.dump());
  REQUIRE(one.model().gradients.size() == 2);
  CHECK(one.model().gradients[0].name == "root.gradient0");
  CHECK(one.model().gradients[0].shape == std::vector<std::int64_t>{7, 3});
  CHECK(one.model().gradients[1].elements == 5);
  CHECK(one.sharding().layers.front().elements == 26);
  CHECK(one.sharding().layers.front().reduced_bytes == 4 * 32);
}

TEST_CASE("a slow network does not change what a job computes") {
  const Read one = read({.gather_us = 50000});
  CHECK(layers_of(one) == layers_of(read({})));
  CHECK(one.model().forward_s == Approx(0.040));
  CHECK(one.sharding().all_gather.exposed_s.value() > 0.2);
}

TEST_CASE("layers of FSDP1 and of plain collectives are known by their sizes") {
  for (const Style style : {Style::kFsdp1, Style::kPlain}) {
    const Read one = read({.style = style});
    // FSDP1's flat parameters show how many of the reduced elements are padding.
    const int padding = style == Style::kFsdp1 ? 1 : 0;
    CHECK(layers_of(one) ==
          fmt::format("layer0 {} 1+0 ready 80; layer1 {} 1+1 ready 60; layer2 {} 1+1 ready 40; "
                      "layer3 {} 1+1 ready 20; ",
                      4000 - padding, 8000 - padding, 8000 - padding, 8000 - padding));
    CHECK(one.model().gradients.back().name == "layer0");
    CHECK(one.sharding().schedule == "fsdp(reshard=true, prefetch=pre)");
  }
}

TEST_CASE("a trace says in which order the job gathers and reduces") {
  for (const Style style : {Style::kFsdp1, Style::kFsdp2, Style::kPlain}) {
    CHECK(read({.style = style, .order = Order::kPost}).sharding().schedule ==
          "fsdp(reshard=true, prefetch=post)");
    CHECK(read({.style = style, .order = Order::kNone}).sharding().schedule ==
          "fsdp(reshard=true, prefetch=none)");
    CHECK(read({.style = style, .reshard = false}).sharding().schedule == "fsdp(reshard=false)");
    CHECK(read({.style = style, .separate_groups = true}).sharding().schedule ==
          "fsdp(reshard=true, prefetch=pre, communicators=separate)");
    CHECK(read({.style = style, .has_groups = false}).sharding().schedule ==
          "fsdp(reshard=true, prefetch=pre)");
  }
}

TEST_CASE("shards of a group whose all-reduces follow are HSDP") {
  for (const Style style : {Style::kFsdp1, Style::kFsdp2, Style::kPlain}) {
    for (const bool has_groups : {true, false}) {
      const Read one = read({.style = style, .shards = 4, .has_groups = has_groups});
      CHECK(one.sharding().schedule == "hsdp(shard=4, reshard=true, prefetch=pre)");
      CHECK(one.sharding().replicas == 2);
      CHECK(one.sharding().all_reduce.count == 4);
      // The bytes are those of all shards, as for gathers and reductions; each rank has a quarter.
      CHECK(one.sharding().all_reduce.bytes == 4 * 28000);
      CHECK(one.sharding().all_reduce.bytes == one.sharding().reduce_scatter.bytes);
      CHECK(one.imported.account.ranks == 8);
    }
  }
}

TEST_CASE("mixed precision has the reductions' type, and says so") {
  const Read one = read({.gathered = "BFloat16"});
  CHECK(one.model().gradients.front().dtype == models::Dtype::kFloat32);
  CHECK(one.sharding().all_gather.bytes == 2 * (28000 + 24000));
  CHECK_THAT(one.said, Contains("gathered in bfloat16 and gradients reduced in float32") &&
                           Contains("baselines fsdp2_mixed and hsdp_mixed of hipress-plan"));
  // No baseline gathers in float16.
  CHECK_THAT(read({.gathered = "Half"}).said,
             Contains("gathered in float16") && !Contains("fsdp2_mixed"));
  const Read half = read({.gathered = "BFloat16", .reduced = "BFloat16"});
  CHECK(half.model().gradients.front().dtype == models::Dtype::kBfloat16);
  CHECK_THAT(half.said, !Contains("gathered in"));
}

TEST_CASE("a schedule that sends other bytes than the job is named with both numbers") {
  // The job gathers and reduces 28000 elements in float32 once: 224 kB. The schedule does both in
  // each of 3 micro-steps.
  const Read once = read({.style = Style::kPlain, .micro_steps = 3, .reshard = false});
  CHECK(once.sharding().schedule == "fsdp(reshard=false)");
  CHECK(once.imported.account.steps.back().sent_bytes == 2 * 4 * 28000);
  CHECK(once.imported.account.model_bytes == 3 * 2 * 4 * 28000);
  CHECK_THAT(once.said, Contains("sends 224kB") && Contains("672kB with fsdp(reshard=false)") &&
                            Contains("3.0 times") && Contains("gathered in 1 of them"));
  // Gathers in bfloat16 have half the bytes of a float32 model: 2 + 4 instead of 8 per element.
  const Read mixed = read({.style = Style::kPlain, .reshard = false, .gathered = "BFloat16"});
  CHECK_THAT(mixed.said, Contains("sends 168kB") && Contains("224kB") && Contains("1.3 times"));
  for (const Style style : {Style::kFsdp1, Style::kFsdp2, Style::kPlain}) {
    for (const bool reshard : {true, false}) {
      CHECK_THAT(read({.style = style, .reshard = reshard}).said, !Contains(" times as "));
      CHECK_THAT(read({.style = style, .reshard = reshard, .shards = 4}).said,
                 !Contains(" times as "));
    }
  }
}

TEST_CASE("windows of a sharded job's micro-batches are one step") {
  for (const Style style : {Style::kFsdp1, Style::kFsdp2, Style::kPlain}) {
    const Read one =
        read({.style = style, .steps = 2, .micro_steps = 3, .window_per_micro_step = true});
    CHECK(one.model().micro_steps == 3);
    CHECK(one.trace.steps.size() == 2);
    CHECK_THAT(one.said, Contains("of 6 windows, 2 have a synchronisation"));
  }
}

TEST_CASE("micro-steps reduce in the last or in all") {
  const Read once = read({.micro_steps = 3});
  CHECK(once.model().micro_steps == 3);
  CHECK_THAT(once.said, Contains("Only the last reduces"));
  CHECK(layers_of(once) ==
        "root 4000 3+0 ready 80; blocks.0 8000 3+3 ready 60; blocks.1 8000 3+3 ready 40; "
        "blocks.2 8000 3+3 ready 20; ");
  CHECK(once.model().forward_s == Approx(0.040));
  const Read all = read({.micro_steps = 2, .every_micro_step_reduces = true});
  CHECK(all.model().micro_steps == 2);
  CHECK_THAT(all.said, !Contains("Only the last reduces"));
  CHECK(all.sharding().reduce_scatter.bytes == 2 * 4 * 28000);
  const Read whole = read({.style = Style::kPlain, .micro_steps = 2, .reshard = false});
  CHECK(whole.sharding().schedule == "fsdp(reshard=false)");
  CHECK(whole.sharding().layers.front().forward_gathers == 1);
}

TEST_CASE("collectives of other groups and of metrics are none of a layer's") {
  for (const Style style : {Style::kFsdp1, Style::kFsdp2, Style::kPlain}) {
    const Job job{.style = style, .clips = true, .reports = true, .has_tensor_parallelism = true};
    const Read one = read(job);
    const Read plain = read({.style = style});
    REQUIRE(one.sharding().layers.size() == 4);
    CHECK(one.sharding().all_gather.bytes == plain.sharding().all_gather.bytes);
    CHECK(one.sharding().reduce_scatter.bytes == plain.sharding().reduce_scatter.bytes);
    // A step also has 4 gathers and 4 reductions of activations, a norm, and two collectives of
    // metrics. Compression cannot gain from them; their time stays in the account.
    CHECK(one.sharding().other.count == 11);
    const models::Traced& traced = one.imported.traced.value();
    CHECK(traced.exposed_communication_s + traced.other_communication_s ==
          Approx(one.trace.steps.back().exposed_communication_s.value()));
    CHECK(traced.other_communication_s == Approx(8 * 0.0005).epsilon(0.05));
    CHECK(models::before_backward_s(one.model()) + models::backward_s(one.model()) +
              traced.exposed_communication_s ==
          Approx(traced.step_s));
    CHECK(one.sharding().schedule == plain.sharding().schedule);
  }
}

TEST_CASE("fewer shards than ranks without all-reduces are said to be of a larger job") {
  const Read one = read_text([] {
    json trace = json::parse(Writer(Job{}).text());
    trace["distributedInfo"]["world_size"] = 32;
    return trace.dump();
  }());
  CHECK(one.sharding().schedule == "fsdp(reshard=true, prefetch=pre)");
  CHECK_THAT(one.said, Contains("among 8 of the 32 ranks") && Contains("simulate 8 nodes"));
}

TEST_CASE("frozen parameters are gathered and not reduced, which is said") {
  // Halve each reduction: 2000 + 3·4000 = 14000 elements remain.
  json trace = json::parse(Writer(Job{}).text());
  for (json& event : trace["traceEvents"]) {
    json& arguments = event["args"];
    if (arguments.value("Collective name", "") != "_reduce_scatter_base") continue;
    for (const char* key : {"In msg nelems", "Out msg nelems"}) {
      arguments[key] = arguments[key].get<std::int64_t>() / 2;
    }
  }
  const Read one = read_text(trace.dump());
  CHECK(models::total_elements(one.model()) == 14000);
  CHECK(one.sharding().all_gather.bytes == 4 * (28000 + 24000));
  CHECK_THAT(one.said, Contains("gather 28000 elements and reduce 14000 (frozen parameters)"));
}

TEST_CASE("an evaluation in a step gathers once more, which is said") {
  const Read one = read({.evaluates = true});
  CHECK(one.sharding().schedule == "fsdp(reshard=true, prefetch=pre)");
  CHECK(one.sharding().layers.front().forward_gathers == 2);
  CHECK_THAT(one.said, Contains("gathered 2 times in forward"));
}

TEST_CASE("a ProfilerStep of several iterations is one of them, with shards too") {
  json trace = json::parse(Writer({.style = Style::kFsdp1, .steps = 4}).text());
  json events = json::array();
  for (json event : trace["traceEvents"]) {
    const std::string name = event["name"];
    if (name == "ProfilerStep#1" || name == "ProfilerStep#3") continue;
    if (name.starts_with("ProfilerStep#")) event["dur"] = 2e6 - 10;
    events.push_back(event);
  }
  trace["traceEvents"] = events;
  const Read one = read_text(trace.dump());
  CHECK(layers_of(one) == layers_of(read({.style = Style::kFsdp1})));
  CHECK(one.model().micro_steps == 1);
  CHECK(one.sharding().all_gather.count == 7);
  CHECK(one.imported.traced.value().step_s == Approx(1.0).epsilon(0.001));
  CHECK_THAT(one.said, Contains("holds 2, of which the last is read"));
}

TEST_CASE("a step that is cut off before its reductions is left out") {
  const Read one = read({.is_cut_off = true});
  CHECK(one.sharding().layers.size() == 4);
  CHECK_THAT(one.said, Contains("ProfilerStep#2 is left out"));
}

TEST_CASE("what a trace does not tell of shards is refused, with the remedy") {
  CHECK_THROWS_WITH(read({.has_sizes = false}),
                    Contains("sharded") && Contains("sizes") && Contains("record_shapes=True"));
  CHECK_NOTHROW(read({.without = "Out msg nelems"}));
  CHECK_NOTHROW(read({.without = "In msg nelems"}));
  CHECK_NOTHROW(read({.without = "Group size"}));
  CHECK_THROWS_WITH(read({.reduced = "Double"}), Contains("float32, float16 and bfloat16"));
}

TEST_CASE("sizes of kernels that say nothing are those of the calls that launch them") {
  json trace = json::parse(Writer({.style = Style::kPlain, .has_sizes = false}).text());
  json& events = trace["traceEvents"];
  const json kernels = events;
  for (const json& kernel : kernels) {
    if (!kernel["args"].contains("Collective name")) continue;
    const bool gathers = kernel["args"]["Collective name"] == "_allgather_base";
    const auto launch = std::ranges::find_if(kernels, [&](const json& event) {
      return event["cat"] == "cuda_runtime" &&
             event["args"]["correlation"] == kernel["args"]["correlation"];
    });
    json call = *launch;
    call["cat"] = "cpu_op";
    call["name"] = gathers ? "c10d::_allgather_base_" : "c10d::_reduce_scatter_base_";
    call["args"] = {{"Input Dims", gathers ? json{{64}, {8}} : json{{8}, {64}}},
                    {"Input type", {"float", "float"}},
                    {"External id", kernel["args"]["correlation"]}};
    events.push_back(call);
  }
  const Read one = read_text(trace.dump());
  CHECK(one.sharding().layers.size() == 4);
  CHECK(models::total_elements(one.model()) == 4 * 64);
}

TEST_CASE("counts that cannot be are not told") {
  for (const char* key : {"In msg nelems", "Out msg nelems", "Group size"}) {
    for (const std::int64_t value : {INT64_MAX, std::int64_t{-1}, std::int64_t{1} << 47}) {
      json trace = json::parse(Writer(Job{}).text());
      for (json& event : trace["traceEvents"]) {
        if (event["args"].contains(key)) event["args"][key] = value;
      }
      CAPTURE(key, value);
      try {
        const Read one = read_text(trace.dump());
        CHECK(models::total_elements(one.model()) <= models::kMaxElements);
      } catch (const io::Unmet& error) {
        CHECK_THAT(error.what(), Contains("no model"));
      }
    }
  }
}

/// Events of a step of 1000 us on the CPU only, with collectives as DeepSpeed calls them.
class Calls : public TraceEvents {
 public:
  void forward(double at) { add("aten::linear", at, 5); }
  void backward(double at, double length) { add(kEvaluationOf + "AddmmBackward0", at, length); }
  void gather(double at, std::int64_t whole) {
    add("c10d::_allgather_base_", at, 2, {{whole}, {whole / 4}}, 1);
  }
  void reduce(double at, std::int64_t whole) {
    add("c10d::_reduce_scatter_base_", at, 2, {{whole / 4}, {whole}}, 1);
  }
  std::string text() {
    add("ProfilerStep#1", 0, 1000);
    return text_of(all_, 4);
  }
  void add(const std::string& name, double at, double length,
           const std::vector<std::vector<std::int64_t>>& shapes = {}, int thread = 1) {
    json arguments = json::object();
    if (!shapes.empty()) {
      arguments = {{"Input Dims", shapes}, {"Input type", {"c10::Half", "c10::Half"}}};
    }
    TraceEvents::add("cpu_op", name, at, length, thread, arguments);
  }
};

TEST_CASE("ZeRO-3's layers are what it gathers, ready with the bucket that ends them") {
  Calls calls;
  calls.forward(1);
  for (int layer = 0; layer < 3; ++layer) calls.gather(10 + 10 * layer, 400);
  calls.backward(100, 20);
  calls.gather(125, 400);
  calls.backward(200, 20);
  calls.reduce(300, 800);
  calls.backward(400, 20);
  calls.reduce(500, 400);
  const Read one = read_text(calls.text());
  CHECK(one.sharding().schedule == "fsdp(reshard=true)");
  // Backward begins at 100. Calls take 2 us each and are not computation: one gather comes before
  // the reduction at 300 (200 - 2 us), and both before the reduction at 500 (400 - 4 us).
  CHECK(layers_of(one) ==
        "layer0 400 1+1 ready 0; layer1 400 1+1 ready 0; layer2 400 1+1 ready 0; ");
  CHECK(one.model().gradients[0].ready_s == Approx(198e-6));
  CHECK(one.model().gradients[1].ready_s == Approx(198e-6));
  CHECK(one.model().gradients[2].ready_s == Approx(396e-6));
  CHECK(one.model().gradients[0].dtype == models::Dtype::kFloat16);
  CHECK_THAT(one.said, Contains("ZeRO-3"));
}

TEST_CASE("ZeRO-3 may gather again in forward, and keep layers for backward") {
  Calls calls;
  calls.forward(1);
  for (int layer = 0; layer < 3; ++layer) calls.gather(10 + 10 * layer, 400);
  calls.gather(50, 400);
  calls.backward(100, 20);
  calls.reduce(300, 700);
  calls.reduce(500, 500);
  const Read one = read_text(calls.text());
  CHECK(one.sharding().schedule == "fsdp(reshard=false)");
  CHECK(one.sharding().layers.size() == 3);
  CHECK(models::total_elements(one.model()) == 1200);
  CHECK_THAT(one.said, Contains("400 elements are taken to be gathered again"));
}

TEST_CASE("ZeRO-2 gathers behind its optimizer") {
  Calls calls;
  calls.forward(1);
  calls.backward(100, 20);
  calls.reduce(200, 800);
  calls.backward(300, 20);
  calls.reduce(400, 400);
  calls.add("Optimizer.step#Adam.step", 500, 50);
  for (int part = 0; part < 3; ++part) calls.gather(600 + part, 400);
  const Read one = read_text(calls.text());
  CHECK(one.sharding().schedule == "fsdp(reshard=false)");
  CHECK(one.sharding().layers.size() == 2);
  CHECK(models::total_elements(one.model()) == 1200);
  CHECK_THAT(one.said, Contains("ZeRO-1, -2"));
}

TEST_CASE("elements that are reduced and not gathered are refused") {
  Calls calls;
  calls.forward(1);
  calls.gather(10, 400);
  calls.backward(100, 20);
  calls.reduce(200, 800);
  CHECK_THROWS_WITH(read_text(calls.text()), Contains("not conserved") && Contains("800") &&
                                                 Contains("400") && Contains("whole steps"));
}

TEST_CASE("one rank alone trains without shards") {
  json trace = json::parse(Writer(Job{}).text());
  trace["distributedInfo"]["world_size"] = 1;
  std::vector<std::string> diagnostics;
  const Imported imported = read_trace(*stream_of(trace.dump()));
  CHECK_FALSE(imported.steps.front().sharded);
}

TEST_CASE("ZeRO-2 with all-reduces is a model of these, and is said to gather") {
  Calls calls;
  calls.forward(1);
  calls.backward(100, 10);
  calls.add(kEvaluationOf + kAccumulateGrad, 120, 20);
  calls.add(kAccumulateGrad, 121, 1, {{64}});
  calls.add("c10d::allreduce_", 125, 2, {{60}});
  calls.add("c10d::allreduce_", 200, 2, {{4}});
  calls.gather(600, 64);
  const Read one = read_text(calls.text());
  CHECK_FALSE(one.imported.sharding);
  CHECK(models::total_elements(one.model()) == 64);
  CHECK_THAT(one.said, Contains("also gathers 64 elements"));
}

TEST_CASE("names of FSDP's ranges say what they are around") {
  const auto named = [](const char* name) { return range_of_fsdp(name).value(); };
  CHECK(named("FSDP::all_gather").is_named);
  CHECK(named("FSDP::all_gather").layer.empty());
  CHECK(named("FSDP::all_gather (layers.3)").layer == "layers.3");
  CHECK(named("FSDP::post_backward_reduce (a, b)").layer == "a, b");
  CHECK_FALSE(named("FSDP::all_gather_copy_out (layers.3)").communicates);
  CHECK(named("FullyShardedDataParallel._post_backward_hook").communicates);
  CHECK_FALSE(range_of_fsdp("FullyShardedDataParallel.forward"));
  CHECK_FALSE(range_of_fsdp("aten::mm"));
}

TEST_CASE("an execution trace has layers and no times") {
  json nodes = json::array();
  int id = 1;
  const auto node = [&](const std::string& name, int parent, json shapes = json::array(),
                        json types = json::array()) {
    nodes.push_back({{"name", name},
                     {"id", ++id},
                     {"ctrl_deps", parent},
                     {"inputs", {{"shapes", shapes}, {"types", types}}}});
    return id;
  };
  const json types = {"Tensor(c10::BFloat16)", "Tensor(c10::BFloat16)"};
  const auto in_range = [&](const std::string& range, const std::string& call, const json& shapes,
                            int parent) { node(call, node(range, parent), shapes, types); };
  for (const char* layer : {"", " (blocks.0)"}) {
    in_range(fmt::format("FSDP::all_gather{}", layer), "c10d::_allgather_base_", {{64}, {16}}, 1);
  }
  in_range("FSDP::all_gather (blocks.0)", "c10d::_allgather_base_", {{64}, {16}},
           node(kEvaluationOf + "X", 1));
  in_range("FSDP::post_backward_reduce (blocks.0)", "c10d::_reduce_scatter_base_", {{16}, {64}},
           node(kEvaluationOf + "X", 1));
  in_range("FSDP::post_backward_reduce", "c10d::_reduce_scatter_base_", {{16}, {64}}, 1);
  const Read one = read_text(json{{"schema", "1.1.1"}, {"nodes", nodes}}.dump());
  CHECK(layers_of(one) == "root 64 1+0 ready 0; blocks.0 64 1+1 ready 0; ");
  CHECK(one.sharding().ranks == 4);
  CHECK(one.model().gradients.front().dtype == models::Dtype::kBfloat16);
  CHECK_THAT(one.said, Contains("no times"));
}

TEST_CASE("a sharded job's trace becomes a model that the tools simulate", "[tool]") {
  const Workplace place;
  place.write("job.json", Writer({.shards = 4}).text());
  const ToolRun imported = place.run("hipress-import job.json --json --output job.yaml");
  CAPTURE(imported.err);
  REQUIRE(imported.status == 0);
  const json report = json::parse(imported.out);
  CHECK(report["schedule"] == "hsdp(shard=4, reshard=true, prefetch=pre)");
  CHECK(report["layers"].size() == 4);
  CHECK(report["layers"][0]["name"] == "root");
  CHECK(report["all_reduce"]["count"] == 4);
  const ToolRun simulated = place.run(
      fmt::format("hipress-sim --input job.yaml --nnodes 8 --profile sosp21 --plan none --schedule "
                  "'{}' --json",
                  report["schedule"].get<std::string>()));
  CAPTURE(simulated.err);
  REQUIRE(simulated.status == 0);
  // A step takes 1 s. All but the exposed communication counts as computation or as waiting for the
  // next batch. Exposed are 4 ms of the first gather, 6 ms of the last reduction, and 2 ms of its
  // mean over replicas.
  CHECK(json::parse(simulated.out)["compute_s"].get<double>() == Approx(0.988).epsilon(1e-4));
  CHECK(report["gradient_ranks"] == 8);
  const ToolRun report_of_people = place.run("hipress-import job.json");
  CHECK_THAT(report_of_people.out,
             Contains("4 layers, 4 shards of each, 2 times") && Contains("all-reduce of shards"));
}

}  // namespace
}  // namespace hipress::traces
