// Tests that gradients of inputs are told from those of parameters, in jobs that ask for the
// gradient of an input. Comments derive the numbers of made-up jobs.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "models/model.hpp"
#include "tests/traces/trace_events.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;
using Shapes = std::vector<std::vector<std::int64_t>>;

/// A job with layers of 128 to 16 and 16 to 1: in backward order, 1 + 16 + 16 + 2048 elements. The
/// input has 64 samples, 8192 elements. Its gradient comes before that of the first weight.
struct Job {
  Shapes parameters = {{1}, {1, 16}, {16}, {16, 128}};
  std::vector<std::int64_t> input = {64, 128};
  bool is_asked_for = true;  ///< requires_grad_() asks for the input's gradient
  bool is_returned = false;  ///< autograd.grad() also returns it, before backward
  bool accumulates = true;   ///< false: all gradients are returned
  bool has_operators = true, has_shapes = true, has_gpu = true;
  std::vector<std::string> updates = {"aten::mul_", "aten::add_"};
  Shapes updated = {};                  ///< by the optimizer; none: as the parameters
  std::vector<std::string> fewer = {};  ///< operators of a second optimizer, for the last parameter
  std::vector<std::int64_t> bucket =
      {};  ///< elements of an all-reduce from the last AccumulateGrad
};

class Writer : public TraceEvents {
 public:
  explicit Writer(Job job) : job_(std::move(job)) {
    for (int step = 0; step < 3; ++step) add_step(step);
  }
  std::string text() const { return text_of(all_, job_.bucket.empty() ? 0 : 8); }

 private:
  void function(const std::string& name, double length_us) {
    add("cpu_op", kEvaluationOf + name, now_, 40, 2);
    add("cpu_op", name, now_ + 1, 38, 2);
    now_ += 5;
    if (job_.has_gpu) launch("gemm", length_us, 2, kComputes, 0);
    now_ += 40;
  }

  /// Evaluates AccumulateGrad without its operator, as torch.autograd.grad() does.
  void give_back() {
    add("cpu_op", kEvaluationOf + kAccumulateGrad, now_, 1, 2);
    now_ += 5;
  }

  void add_gradient(const std::vector<std::int64_t>& shape) {
    if (!job_.accumulates) return give_back();
    if (job_.has_operators) {
      accumulate(2, job_.has_shapes ? tensor(shape) : json::object());
    } else {
      add("cpu_op", kEvaluationOf + kAccumulateGrad, now_, 90, 2);
      now_ += 20;
    }
  }

  void update(const std::vector<std::string>& names, const Shapes& shapes) {
    add("user_annotation", "Optimizer.step#Adam.step", now_, 50, 1);
    for (const std::string& name : names) {
      if (name.find("_foreach_") != std::string::npos) {
        add("cpu_op", name, ++now_, 0.5, 1, {{"Input Dims", json::array({shapes})}});
        continue;
      }
      for (const auto& shape : shapes) add("cpu_op", name, ++now_, 0.5, 1, tensor(shape));
    }
    now_ += 60;
  }

  void add_step(int step) {
    const double begin = 1e6 + step * 1e5;
    now_ = begin + 10;
    add("cpu_op", "aten::linear", now_, 5, 1);
    add("cpu_op", "aten::relu_", now_ + 5, 5, 1, tensor(job_.input));
    if (job_.has_gpu) launch("gemm", 1000, 1, kComputes, 0);
    now_ += 20;
    if (job_.is_returned) {
      function("AddmmBackward0", 1000);
      give_back();
      add("cpu_op", "aten::norm", now_, 5, 1);
      now_ += 20;
    }
    for (std::size_t p = 0; p < job_.parameters.size(); ++p) {
      function("AddmmBackward0", 1000);
      const bool last = p + 1 == job_.parameters.size();
      if (last && job_.is_asked_for) add_gradient(job_.input);
      add_gradient(job_.parameters[p]);
      if (!last) now_ += 100;
    }
    for (const std::int64_t elements : job_.bucket) {
      launch("ncclDevKernel_AllReduce", 1000, 2, kCommunicates, compute_,
             {{"Collective name", "allreduce"}, {"In msg nelems", elements}, {"dtype", "Float"}});
    }
    now_ += 200;
    update(job_.updates, job_.updated.empty() ? job_.parameters : job_.updated);
    if (!job_.fewer.empty() && step == 1) update(job_.fewer, {job_.parameters.back()});
    add("user_annotation", fmt::format("ProfilerStep#{}", step), begin, 1e5 - 10, 1);
  }

  const Job job_;
};

Read read(const Job& job) { return read_text(Writer(job).text()); }

constexpr std::int64_t kParameters = 1 + 16 + 16 + 2048;

TEST_CASE("the gradient of an input is not a parameter's") {
  const std::vector<std::vector<std::string>> optimizers = {
      {"aten::add_"},
      {"aten::mul_", "aten::addcmul_", "aten::addcdiv_", "aten::mul_"},
      {"aten::_foreach_add_"},
      {"aten::_fused_foreach_adam_"},
  };
  for (const bool has_gpu : {true, false}) {
    for (const auto& updates : optimizers) {
      CAPTURE(has_gpu, updates.front());
      const Read got = read({.has_gpu = has_gpu, .updates = updates});
      CHECK(models::total_elements(got.model()) == kParameters);
      CHECK(got.model().gradients.size() == 4);
      CHECK_THAT(got.said,
                 Contains("1 gradient of ProfilerStep#2, of 8192 elements, is of inputs") &&
                     Contains("adversarial training"));
    }
  }
  const Read plain = read({.is_asked_for = false});
  CHECK(models::total_elements(plain.model()) == kParameters);
  CHECK_THAT(plain.said, !Contains("of inputs"));
}

TEST_CASE("an input with the shape of a weight is told by how often the optimizer updates one") {
  for (const auto& updates : {std::vector<std::string>{"aten::add_"},
                              std::vector<std::string>{"aten::mul_", "aten::mul_", "aten::add_"}}) {
    const Read got = read({.parameters = {{1}, {1, 16}, {16}, {64, 128}}, .updates = updates});
    CHECK(models::total_elements(got.model()) == 1 + 16 + 16 + 8192);
  }
  // A second optimizer steps more rarely, so numbers of updates do not show numbers of parameters.
  const Read twice = read({.parameters = {{1}, {1, 16}, {16}, {64, 128}}, .fewer = {"aten::mul_"}});
  CHECK(models::total_elements(twice.model()) == 1 + 16 + 16 + 2 * 8192);
}

TEST_CASE("optimizers that update none of the parameters' shapes tell nothing") {
  for (const Shapes& updated : {Shapes{{kParameters}}, Shapes{{1}, {1, 16}}}) {
    const Read got = read({.is_asked_for = false, .updated = updated});
    CHECK(models::total_elements(got.model()) == kParameters);
  }
  const Read silent = read({.updates = {}});
  CHECK(models::total_elements(silent.model()) == kParameters + 8192);
}

TEST_CASE("buckets tell which gradients they carry, whatever optimizers show") {
  for (const std::vector<std::string>& updates : {std::vector<std::string>{}, {"aten::add_"}}) {
    const Read got = read({.updates = updates, .bucket = {kParameters}});
    CHECK(models::total_elements(got.model()) == kParameters);
    CHECK(got.trace.steps.back().collective_elements() == kParameters);
    CHECK_THAT(got.said,
               Contains("of 8192 elements, is in no bucket") && Contains("does not average"));
  }
  // The optimizer does not update one of the parameters in the bucket.
  const Read frozen =
      read({.is_asked_for = false, .updated = {{1, 16}, {16}, {16, 128}}, .bucket = {kParameters}});
  CHECK(models::total_elements(frozen.model()) == kParameters);
  // The elements that the buckets lack are neither the input's nor those of any other gradient.
  CHECK_THROWS_WITH(read({.bucket = {kParameters - 5}}), Contains("not conserved"));
}

TEST_CASE("gradients that torch.autograd.grad() returns are not accumulated") {
  for (const bool has_gpu : {true, false}) {
    // With a gradient penalty, the backward pass also goes through the input.
    const Read penalty = read({.is_returned = true, .has_gpu = has_gpu});
    CHECK(models::total_elements(penalty.model()) == kParameters);
    CHECK(penalty.model().micro_steps == 1);
    CHECK_THAT(penalty.said, !Contains("record_shapes"));
    const Read attack = read({.is_asked_for = false, .is_returned = true, .has_gpu = has_gpu});
    CHECK(models::total_elements(attack.model()) == kParameters);
    CHECK_THROWS_WITH(read({.is_asked_for = false, .accumulates = false, .has_gpu = has_gpu}),
                      Contains("torch.autograd.grad() returns the 4 gradients of ProfilerStep#") &&
                          Contains("backward()") && !Contains("record_shapes"));
  }
  // If operators of AccumulateGrad are not recorded, evaluations that launch kernels count as them.
  const Read bare = read({.is_asked_for = false, .has_operators = false, .bucket = {kParameters}});
  CHECK(bare.trace.steps.back().gradients.size() == 4);
  CHECK(models::total_elements(bare.model()) == kParameters);
}

TEST_CASE("gradients of which some have no size are not missing record_shapes") {
  json events = Writer({.is_asked_for = false}).events();
  for (json& event : events) {
    if (event["args"] == tensor({16})) event["args"] = tensor({0});
  }
  CHECK_THROWS_WITH(read_text(text_of(events)),
                    Contains("the sizes of 3 of the 4 gradients") && !Contains("record_shapes"));
}

TEST_CASE("execution traces tell inputs from parameters, too") {
  json nodes = json::array();
  int id = 1;
  const auto node = [&](const std::string& name, int parent, json shapes = json::array()) {
    const json types = shapes.empty() ? json::array() : json{"Tensor(float)"};
    nodes.push_back({{"name", name},
                     {"id", ++id},
                     {"ctrl_deps", parent},
                     {"inputs", {{"shapes", std::move(shapes)}, {"types", types}}}});
    return id;
  };
  const auto text = [&] { return json{{"schema", "1.1.1"}, {"nodes", nodes}}.dump(); };
  const Job job;
  node(kEvaluationOf + kAccumulateGrad, 1);  // its gradient is returned
  CHECK_THROWS_WITH(read_text(text()), Contains("returns the 1 gradients"));
  for (const auto& shape : {job.parameters[2], job.input, job.parameters[3]}) {
    node(kAccumulateGrad, node(kEvaluationOf + kAccumulateGrad, 1), json::array({shape}));
  }
  const int step = node("Optimizer.step#SGD.step", 1);
  node("aten::add_", step, json::array({job.parameters[2]}));
  node("aten::add_", step, json::array({job.parameters[3]}));
  node("aten::add_", 1, json::array({job.input}));
  const Read got = read_text(text());
  CHECK(models::total_elements(got.model()) == 16 + 2048);
  CHECK_THAT(got.said, Contains("of 8192 elements, is of inputs"));
}

}  // namespace
}  // namespace hipress::traces
