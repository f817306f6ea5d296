#include "models/arithmetic.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "models/time_options.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using Catch::Contains;
using hipress::tests::complaint;

namespace {

/// A model of one matrix, by which each token takes 10^6 multiplications.
Model one_matrix() {
  Model model{.name = "one"};
  model.unit = "tokens";
  model.positions = 1000;
  model.gradients.push_back(
      {.name = "w", .elements = 1'000'000, .shape = {1000, 1000}, .work = {.flops = 2e6}});
  return model;
}

/// In bf16, matrix products reach a share of 0.68 of the 100 Tflop/s.
const Rates kRates = {
    .name = "m", .peak = {{"bf16", 100e12}, {"fp32", 10e12}}, .memory_bandwidth = 1e12};

constexpr double kPeakShare = 0.68, kMemoryShare = 0.75;

double pass_s(const Job& job, Rates rates = kRates) {
  Model model = one_matrix();
  compute(job, rates, model);
  return model.forward_s + backward_s(model);
}

}  // namespace

TEST_CASE("computation is operations over a share of the peak") {
  Model model = one_matrix();
  const auto said = compute({.batch = 1000, .dtype = "bf16"}, kRates, model);
  // Each of 10^6 tokens takes 2 · 10^6 operations at 68 Tflop/s. Backward has twice as many.
  const double forward_s = 2e6 * 1e6 / (kPeakShare * 100e12);
  CHECK(model.forward_s == Approx(forward_s));
  CHECK(backward_s(model) == Approx(2 * forward_s));
  CHECK(model.gradients[0].dtype == Dtype::kBfloat16);
  CHECK(model.batch == 1'000'000);
  // Adam moves 28 bytes per parameter.
  CHECK(model.optimizer_s == Approx(28e6 / (kMemoryShare * 1e12)));
  REQUIRE(said.size() == 1);
  // Both passes together have 6 · 10^12 operations, at 68 % of the peak.
  CHECK_THAT(said[0], Contains("by arithmetic") && Contains("68 % of m's peak in bf16"));
}

TEST_CASE("throughput is of all GPUs, and utilisation without what is computed again") {
  Model model = one_matrix();
  CHECK_FALSE(throughput(model, 8, 1).has_value());  // no batch
  model.batch = 3;
  CHECK_FALSE(throughput(model, 8, 1)->mfu.has_value());
  compute({.batch = 1000, .dtype = "bf16", .checkpoint = "full", .micro_steps = 2}, kRates, model);
  // Each of the two micro-steps has 6 · 10^12 operations. At 100 Tflop/s they take 0.12 s of the
  // step's 0.3 s.
  const auto found = throughput(model, 8, 0.3);
  CHECK(found->units_per_s == Approx(2 * 8 * 1e6 / 0.3));
  CHECK(found->unit == "tokens");
  CHECK(found->mfu.value() == Approx(0.4));
}

TEST_CASE("checkpoints compute forward again") {
  const double plain_s = pass_s({.batch = 1000, .dtype = "bf16"});
  CHECK(pass_s({.batch = 1000, .dtype = "bf16", .checkpoint = "full"}) == Approx(plain_s * 4 / 3));
  CHECK(pass_s({.batch = 1000, .dtype = "bf16", .checkpoint = "selective"}) ==
        Approx(plain_s * 3.5 / 3));
}

TEST_CASE("attention grows with the sequence, and values move through memory") {
  Model model = one_matrix();
  model.gradients[0].work = {.attention = 4000, .values = 5000};
  compute({.batch = 10, .positions = 2000, .dtype = "bf16"}, kRates, model);
  // Each of 20000 tokens takes 4000 · 2000 operations at 40 Tflop/s, and moves 5000 values of 2
  // bytes.
  CHECK(model.forward_s ==
        Approx(2e4 * 4000 * 2000 / 40e12 + 2e4 * 5000 * 2 / (kMemoryShare * 1e12)));
  CHECK(model.activation_bytes == 2e4 * 5000);  // half of the values, 2 bytes each
}

TEST_CASE("what is known better replaces arithmetic") {
  // 6 · 10^12 operations take 0.12 s at half of 100 Tflop/s.
  CHECK(pass_s({.batch = 1000, .dtype = "bf16", .mfu = 0.5}) == Approx(0.12));
  // 10^6 tokens at 4 · 10^6 tokens/s.
  CHECK(pass_s({.batch = 1000, .dtype = "bf16", .units_per_s = 4e6}) == Approx(0.25));
}

TEST_CASE("ranks that wait for each other, DDP's own time and launches take longer") {
  Rates eight = kRates;
  eight.gpus = 8;
  const Job job = {.batch = 1000, .dtype = "bf16"};
  CHECK(pass_s(job, eight) == Approx(pass_s(job) * (1 + 0.025 + 3 * 0.01)));
  Job ddp = job;
  ddp.per_gradient_s = 1e-3;
  // The gradient's 10^6 values of 2 bytes are read and written twice.
  CHECK(pass_s(ddp) == Approx(pass_s(job) + 1e-3 + 4 * 2e6 / (kMemoryShare * 1e12)));
  // Computing one token takes hardly any time; the host's launches of its kernels take 0.2 ms.
  CHECK(pass_s({.batch = 1, .positions = 1, .dtype = "bf16"}) == Approx(200e-6));
  // At half of the speed, the GPU waits for its host, so the slowdown by collectives (2.5 %) and
  // that per doubling of the ranks (1 %) are doubled.
  const Job slow = {.batch = 1000, .dtype = "bf16", .mfu = 0.34};
  CHECK(pass_s(slow, eight) == Approx(pass_s(slow) * (1 + 2 * (0.025 + 3 * 0.01))));
  // Each GPU updates its shard of the optimizer's state.
  Model model = one_matrix();
  eight.shards = 8;
  compute(job, eight, model);
  CHECK(model.optimizer_s == Approx(28e6 / (kMemoryShare * 1e12) / 8));
}

TEST_CASE("models without work have that of their matrices, and named ones their architecture's") {
  Model model = one_matrix();
  model.positions = 0;
  model.gradients[0].work = {};
  const auto said = compute({.batch = 1, .positions = 1000, .dtype = "bf16"}, kRates, model);
  CHECK_THAT(said[0], Contains("from the shapes of its matrices"));
  CHECK(model.gradients[0].work.flops == 2e6);
  Model measured = read_model("resnet50");
  REQUIRE(measured.gradients[0].work == Work());
  CHECK(compute({.batch = 32}, kRates, measured).size() == 1);
  // Forward takes 8.2 Gflop per image at 85 % of 10 Tflop/s, and the traffic of the activations.
  CHECK(measured.forward_s > 32 * 8.18e9 / 8.5e12);
  CHECK(measured.forward_s < 2 * 32 * 8.18e9 / 8.5e12);
}

TEST_CASE("impossible jobs are refused") {
  const auto refusal = [](const Job& job) { return complaint([&] { pass_s(job); }); };
  CHECK_THAT(refusal({.batch = 1, .dtype = "fp64"}), Contains("`dtype` must be one of fp32, tf32"));
  CHECK_THAT(refusal({.batch = 1, .dtype = "tf32"}), Contains("machine m has no such peak"));
  CHECK_THAT(refusal({.batch = 1, .checkpoint = "some"}), Contains("`checkpoint` must be one of"));
  Model images = read_model("resnet50");
  CHECK_THAT(complaint([&] { compute({.batch = 1, .positions = 8}, kRates, images); }),
             Contains("`seq`: resnet50 is not trained on sequences"));
  Model unknown{.name = "x"};
  unknown.gradients = {{.name = "a", .elements = 3}};
  CHECK_THAT(complaint([&] { compute({.batch = 1}, kRates, unknown); }),
             Contains("no matrix of it has a shape"));
  unknown.gradients = {{.name = "a", .elements = 9, .shape = {1, 1, 3, 3}}};
  CHECK_THAT(complaint([&] { compute({.batch = 1}, kRates, unknown); }),
             Contains("depends on the size of images"));
}

TEST_CASE("a model without times on a machine is told what derives them") {
  Model model = one_matrix();
  const auto said = apply({.rates = kRates}, model);
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("one has no times: `batch`"));
  CHECK(apply({.compute_time = "1s", .rates = kRates}, model).front().find("`batch`") ==
        std::string::npos);
}

TEST_CASE("options that describe a job name what they lack") {
  const auto refusal = [](TimeOptions options) {
    Model model = one_matrix();
    return complaint([&] { apply(options, model); });
  };
  CHECK_THAT(refusal({.batch = 1}), Contains("name a `machine`"));
  CHECK_THAT(refusal({.mfu = "45%"}), Contains("`mfu` needs a job") && Contains("add `batch`"));
  CHECK_THAT(refusal({.checkpoint = "full"}), Contains("`checkpoint` needs a job"));
  CHECK_THAT(refusal({.batch = 1, .mfu = "145%", .rates = kRates}),
             Contains("`mfu` must be a share of the peak"));
  CHECK_THAT(refusal({.batch = 1, .mfu = "40%", .tokens_per_s = 3, .rates = kRates}),
             Contains("`mfu` and `tokens_per_s` both"));
  CHECK_THAT(refusal({.batch = 1u << 30, .seq = 1u << 30, .rates = kRates}),
             Contains("`batch` must leave a step"));
  // A given time for all passes overrides the derived one, and keeps its proportions.
  Model model = one_matrix();
  apply({.compute_time = "3s", .batch = 1, .per_gradient = "0us", .rates = kRates}, model);
  CHECK(before_backward_s(model) + backward_s(model) == Approx(3));
}
