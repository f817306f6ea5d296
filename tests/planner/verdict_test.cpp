#include "planner/analysis/verdict.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <utility>

#include "planner/baselines/ddp.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;
using Catch::StartsWith;

models::Model model_of(const std::vector<std::int64_t>& elements) {
  models::Model model;
  for (std::size_t g = 0; g < elements.size(); ++g) {
    model.gradients.push_back({.name = fmt::format("g{}", g),
                               .elements = elements[g],
                               .ready_s = 1e-3 * static_cast<double>(g)});
  }
  return model;
}

TEST_CASE("DDP's first bucket is closed at 1 MiB, the others at 25 MiB") {
  constexpr std::int64_t kMiB = (1 << 20) / 4;  // in fp32 elements
  // The gradient that reaches the limit is still in the bucket.
  const models::Model model = model_of({kMiB / 2, kMiB, 10 * kMiB, 14 * kMiB, 5 * kMiB, 1});
  CHECK(ddp_buckets(model) == std::vector<std::vector<std::uint32_t>>{{0, 1}, {2, 3, 4}, {5}});
}

TEST_CASE("DDP's buckets follow the order of backward") {
  models::Model model = model_of({1 << 20, 8, 16});
  model.gradients[0].ready_s = 1;  // ready last
  CHECK(ddp_buckets(model) == std::vector<std::vector<std::uint32_t>>{{1, 2, 0}});
}

TEST_CASE("DDP's buckets hold gradients of one type, which are all-reduced as they are") {
  models::Model model = model_of({1 << 20, 8, 1 << 18, 16, 1 << 20});
  for (const int g : {1, 2, 4}) model.gradients[g].dtype = models::Dtype::kBfloat16;
  // 2^20 fp32 numbers fill the first fp32 bucket. The bf16 gradients have a bucket of their own.
  CHECK(ddp_buckets(model) == std::vector<std::vector<std::uint32_t>>{{0}, {1, 2, 4}, {3}});
  const Problem problem = {.model = model, .nodes = 4, .algorithms = {"onebit"}};
  const casync::Plan plan = ddp(problem);
  REQUIRE(plan.algorithms.size() == 1);
  CHECK(plan.algorithms[0].name == "bf16");
  CHECK_FALSE(compresses(model, plan));
  CHECK(plan.bulk_groups == std::vector<std::vector<std::uint32_t>>{{1, 2, 4}});
}

/// One compressed gradient, and comparisons with given times and spreads.
struct Case {
  models::Model model = model_of({1 << 20});
  Problem problem = {.model = model, .nodes = 4, .algorithms = {"onebit"}};
  casync::Plan raw = {.nodes = 4, .algorithms = {}, .decisions = {{}}};
  casync::Plan lossy = {
      .nodes = 4, .algorithms = {algorithm("onebit")}, .decisions = {{.algorithm = 0}}};

  Contender contender(const casync::Plan& plan, double time_s) const {
    return {.name = {},
            .plan = {plan, sim::TransferOrder::kReady, time_s},
            .response = sim::Response{.time_s = time_s, .links_s = time_s}};
  }
  /// Comparison with the times of the plan, and of the best plans without and with compression.
  Comparison comparison(double planned_s, double raw_s, double lossy_s) const {
    Comparison made = {.planned_s = planned_s, .baselines = {}};
    made.planned = sim::Response{.time_s = planned_s, .links_s = planned_s};
    made.uncompressed = contender(raw, raw_s);
    made.compressed = contender(lossy, lossy_s);
    made.spread = {.links = 0.1, .model = 0.03};
    return made;
  }
};

TEST_CASE("a plan that is clearly faster is advised") {
  const Case one;
  const Verdict verdict = judge(one.problem, one.lossy, one.comparison(0.1, 0.15, 0.1));
  CHECK(verdict.answer == Answer::kCompress);
  CHECK(verdict.probability.value() > 0.99);
  CHECK_THAT(verdict.sentence, Contains("compress (99 % sure, learning not measured") &&
                                   Contains("saves 50ms of 150ms") && Contains("33.3 %"));
}

TEST_CASE("without ready times a verdict to compress is a range, and one against it stands") {
  const Case one;
  const Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  Verdict verdict = judge(one.problem, one.lossy, comparison);
  weaken(models::MissingTimes::kNone, verdict, comparison);
  CHECK(verdict.answer == Answer::kCompress);
  weaken(models::MissingTimes::kForward, verdict, comparison);
  CHECK(verdict.answer == Answer::kCompress);
  CHECK_THAT(verdict.sentence, StartsWith("without a forward time (`forward`)"));
  verdict = judge(one.problem, one.lossy, comparison);
  weaken(models::MissingTimes::kReady, verdict, comparison);
  CHECK(verdict.answer == Answer::kTooClose);
  CHECK_FALSE(verdict.probability);
  CHECK_THAT(verdict.sentence, StartsWith("too close to call: without ready times") &&
                                   Contains("between nothing and 50ms of 150ms") &&
                                   Contains("`compute_time`") &&
                                   Contains("If all communication is exposed: compress"));
  verdict = judge(one.problem, one.raw, one.comparison(0.1, 0.1, 0.1));
  const std::string before = verdict.sentence;
  weaken(models::MissingTimes::kReady, verdict, comparison);
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK(verdict.sentence == before);
}

TEST_CASE("times of other hardware than the profile's are named first") {
  CHECK(other_hardware("Sizes and ready times measured on one V100.", "H100 (HBM3)") ==
        "computation was timed on V100, and the profile is of H100 (give `compute_time`): ");
  CHECK(other_hardware("measured on one V100", "Tesla V100-SXM2").empty());
  CHECK(other_hardware("measured here", "H100").empty());
  CHECK(other_hardware("V100", "2 cores").empty());
  CHECK(other_hardware("between V100 and A100", "H100").empty());
}

TEST_CASE(
    "where groups without compression are faster, their time is what compression is measured by") {
  const Case one;
  Comparison comparison = one.comparison(0.14, 0.1, 0.0999);
  comparison.uncompressed->name = "none_grouped";
  comparison.uncompressed->plan.plan.bulk.threshold_bytes = 1 << 20;
  const Verdict verdict = judge(one.problem, one.raw, comparison);
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK_THAT(verdict.sentence,
             Contains("baseline none_grouped (groups: take `output` X.yaml) takes 100ms") &&
                 Contains("this plan, also uncompressed, 140ms") && Contains("would save 0.1 %"));
}

TEST_CASE("a plan that is faster by less than it may be wrong is too close to call") {
  const Case one;
  const Verdict verdict = judge(one.problem, one.lossy, one.comparison(0.1, 0.102, 0.1));
  CHECK(verdict.answer == Answer::kTooClose);
  CHECK(verdict.probability.value() > 0.5);
  CHECK(verdict.probability.value() < 0.9);
  CHECK_THAT(verdict.sentence, Contains("too close to call"));
}

TEST_CASE("an interval wider than a factor of 3 decides nothing") {
  // If links take all of the time, p90/p10 = exp(2 · 1.2816 σ): 2.93 for σ = 0.42, 3.09 for 0.44.
  const Case one;
  for (const auto& [links, answer] :
       {std::pair(0.42, Answer::kCompress), std::pair(0.44, Answer::kTooUncertain)}) {
    Comparison comparison = one.comparison(0.1, 0.5, 0.1);
    comparison.spread = {.links = links};
    const Verdict verdict = judge(one.problem, one.lossy, comparison);
    CHECK(verdict.answer == answer);
    CHECK(verdict.probability.has_value() == (answer == Answer::kCompress));
  }
  Comparison wide = one.comparison(0.1, 0.1, 0.12);
  wide.spread = {.links = 1};
  const Verdict against = judge(one.problem, one.raw, wide);
  CHECK(against.answer == Answer::kTooUncertain);
  CHECK_THAT(against.sentence, StartsWith("too uncertain: this plan takes 100ms (") &&
                                   Contains("wider than a factor of 3"));
  // If only the rival's interval is wide, there is no decision either.
  Comparison rival = one.comparison(0.1, 0.5, 0.1);
  rival.spread = {.links = 1};
  rival.planned = rival.compressed->response = sim::Response{.time_s = 0.1, .compute_s = 0.1};
  CHECK(judge(one.problem, one.lossy, rival).answer == Answer::kTooUncertain);
  // One node sends nothing, so the advice does not depend on the interval.
  Problem alone = one.problem;
  alone.nodes = 1;
  CHECK(judge(alone, one.raw, wide).answer == Answer::kDoNotCompress);
}

TEST_CASE("a saving within the tolerance is not worth its loss") {
  const Case one;
  const Verdict verdict = judge(one.problem, one.lossy, one.comparison(0.0998, 0.1, 0.0998));
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK_THAT(verdict.sentence, Contains("saving 0.2 %") && Contains("tolerance 0.5 %"));
}

TEST_CASE("a plan without compression says what compression would bring") {
  const Case one;
  const Verdict verdict = judge(one.problem, one.raw, one.comparison(0.1, 0.1, 0.0998));
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK_THAT(verdict.sentence, Contains("do not compress: 100ms") && Contains("would save 0.2 %"));
  CHECK_THAT(judge(one.problem, one.raw, one.comparison(0.1, 0.1, 0.12)).sentence,
             Contains("would take 20.0 % longer"));
}

TEST_CASE("a faster rival without compression is advised instead of the plan") {
  const Case one;
  const Verdict verdict = judge(one.problem, one.lossy, one.comparison(0.15, 0.1, 0.15));
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK(verdict.probability.value() > 0.99);
  CHECK_THAT(verdict.sentence,
             Contains("the best plan without compression") && Contains("50.0 % longer"));
}

TEST_CASE("where a baseline that cannot be the plan pays, it is advised") {
  const Case one;
  Comparison comparison = one.comparison(0.15, 0.1, 0.15);
  comparison.elsewhere = one.contender(one.lossy, 0.07);
  comparison.elsewhere->name = "ddp_fp16";
  const Verdict verdict = judge(one.problem, one.lossy, comparison);
  CHECK(verdict.answer == Answer::kCompress);
  CHECK_THAT(verdict.sentence, StartsWith("compress, but with another plan") &&
                                   Contains("PyTorch DDP with its fp16 hook takes 70ms") &&
                                   Contains("this plan 150ms"));
  comparison.elsewhere->plan.iteration_s = 0.0998;
  comparison.elsewhere->response->links_s = 0.0998;
  CHECK(judge(one.problem, one.lossy, comparison).answer == Answer::kDoNotCompress);
}

TEST_CASE("alone, there is nobody to compress for") {
  Case one;
  one.problem.nodes = 1;
  const Verdict verdict = judge(one.problem, one.raw, one.comparison(0.1, 0.1, 0.1));
  CHECK(verdict.answer == Answer::kDoNotCompress);
  CHECK_THAT(verdict.sentence, Contains("one node"));
}

TEST_CASE("DDP's times stand in the verdict") {
  const Case one;
  Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  comparison.baselines = {
      {.name = "ddp", .plan = one.raw, .iteration_s = 0.18, .diagnostic = {}},
      {.name = "ddp_fp16", .plan = one.lossy, .iteration_s = 0.14, .diagnostic = {}}};
  CHECK_THAT(judge(one.problem, one.lossy, comparison).sentence,
             Contains("saves 80ms of 180ms (44.4 %") && Contains("over PyTorch DDP, and 50ms of") &&
                 Contains("; PyTorch DDP with its fp16 hook takes 140ms"));
}

TEST_CASE("what half precision alone would bring stands beside a coarser plan") {
  const Case one;
  Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  const casync::Plan half = {
      .nodes = 4, .algorithms = {algorithm("fp16")}, .decisions = {{.algorithm = 0}}};
  comparison.baselines.push_back(
      {.name = "fp16", .plan = half, .iteration_s = 0.12, .diagnostic = {}});
  CHECK_THAT(judge(one.problem, one.lossy, comparison).sentence,
             Contains(", and half precision alone would save 30ms"));
  comparison.planned_s = 0.12;
  comparison.planned = sim::Response{.time_s = 0.12, .links_s = 0.12};
  CHECK_THAT(judge(one.problem, half, comparison).sentence, !Contains("half precision"));
}

TEST_CASE("DDP that is faster than the plan is said to be") {
  const Case one;
  Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  comparison.baselines.push_back(
      {.name = "ddp_fp16", .plan = one.raw, .iteration_s = 0.09, .diagnostic = {}});
  CHECK_THAT(judge(one.problem, one.lossy, comparison).sentence,
             Contains("with its fp16 hook takes 90ms, less than this plan"));
}

TEST_CASE("without intervals nothing is said of how sure an advice is") {
  const Case one;
  Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  comparison.planned = std::nullopt;
  const Verdict verdict = judge(one.problem, one.lossy, comparison);
  CHECK(verdict.answer == Answer::kCompress);
  CHECK_FALSE(verdict.probability);
  CHECK_THAT(verdict.sentence, Contains("compress (probability unknown") && !Contains("% sure"));
}

TEST_CASE("why nothing was simulated is the verdict") {
  const Case one;
  const Comparison comparison = {.planned_s = std::nullopt,
                                 .not_simulated = "nothing was simulated: no costs of 'x.pse'",
                                 .baselines = {}};
  CHECK(judge(one.problem, one.lossy, comparison).sentence ==
        "too close to call: nothing was simulated: no costs of 'x.pse'");
}

TEST_CASE("a plan that was not simulated has no verdict") {
  const Case one;
  Comparison comparison = one.comparison(0.1, 0.15, 0.1);
  comparison.planned_s.reset();
  CHECK_THAT(judge(one.problem, one.lossy, comparison).sentence, Contains("too large"));
}

}  // namespace
}  // namespace hipress::planner
