#include <catch2/catch.hpp>

#include "io/error.hpp"
#include "plans/plan_options.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;
using Catch::Contains;

namespace {

const models::Model kModel = small_model();
const PlanContext kContext = {.model = kModel, .topology = "allgather", .nodes = 4};

/// Plan in which gradient a is raw, b is compressed by dgc, and c by fp16.
ResolvedPlan plan_of(const TemporaryFolder& folder, const std::string& dense) {
  return resolve_plan(
      folder.file(
          "p.yaml",
          "schema: hipress.plan/1\ntopology: allgather\nnodes: 4\n" + dense +
              "gradients:\n"
              "  - {name: a, elements: 100, algorithm: none, K: 2}\n"
              "  - {name: b, elements: 300000, algorithm: 'dgc(rho=0.01,packing=2)', K: 8}\n"
              "  - {name: c, elements: 50, algorithm: fp16, K: 4}\n"),
      kContext);
}

std::string complaint_about(const std::string& dense) {
  const TemporaryFolder folder;
  return complaint([&] { plan_of(folder, dense); });
}

}  // namespace

TEST_CASE("what a plan sends sparse takes the density that is asked for, or goes dense") {
  const TemporaryFolder folder;
  ResolvedPlan plan = plan_of(folder, "dense: {above: 0.06, algorithm: fp16, K: 16}\n");
  CHECK(plan.dense == DenseFallback{.above = 0.06, .algorithm = "fp16", .partitions = 16});
  for (const double density : {0.001, 0.06}) {
    ResolvedPlan sparse = plan;
    apply({.density = density}, kContext, sparse);
    CHECK(algorithm_of(sparse, 0).empty());
    CHECK(algorithm_of(sparse, 1) == with_density("dgc(packing=2)", density));
    CHECK(partitions_of(sparse, 1) == 8);
    CHECK(algorithm_of(sparse, 2) == "fp16");
    REQUIRE(sparse.codecs.size() == sparse.plan.algorithms.size());
    const auto place = static_cast<std::size_t>(sparse.plan.decisions[1].algorithm);
    CHECK(sparse.codecs[place]->encoded_bytes(100000) ==
          kernels::make_codec(algorithm_of(sparse, 1))->encoded_bytes(100000));
  }
  ResolvedPlan dense = plan;
  apply({.density = 0.061}, kContext, dense);
  CHECK(algorithm_of(dense, 1) == "fp16");
  CHECK(partitions_of(dense, 1) == 16);
  CHECK(partitions_of(dense, 0) == 2);
  CHECK(partitions_of(dense, 2) == 4);

  plan = plan_of(folder, "dense: {above: 0.06, algorithm: none, K: 4}\n");
  apply({.density = 0.25}, kContext, plan);
  CHECK(algorithm_of(plan, 1).empty());
  plan = plan_of(folder, "");  // has no dense fallback
  apply({.density = 1}, kContext, plan);
  CHECK(algorithm_of(plan, 1) == "dgc(rho=1,packing=2)");
}

TEST_CASE("a fallback is written and read back") {
  const TemporaryFolder folder;
  const ResolvedPlan plan = plan_of(folder, "");
  const DenseFallback dense = {.above = 0.0625, .algorithm = "bf16", .partitions = 8};
  write_plan_yaml(folder.path("q.yaml"), kModel, plan.plan,
                  {.search = "timeline", .profile = "p", .network = "port", .dense = dense});
  CHECK(resolve_plan(folder.path("q.yaml"), kContext).dense == dense);
}

TEST_CASE("densities and fallbacks that make no sense are refused") {
  const TemporaryFolder folder;
  ResolvedPlan plan = plan_of(folder, "");
  for (const double density : {0.0, -0.5, 1.5}) {
    CHECK_THAT(complaint([&] { apply({.density = density}, kContext, plan); }),
               Contains("`density`") && Contains("above 0 and at most 1"));
  }
  ResolvedPlan raw = resolve_plan("fp16", kContext);
  CHECK_THAT(complaint([&] { apply({.density = 0.5}, kContext, raw); }),
             Contains("sends no gradient sparse") && Contains("dgc"));
  CHECK_THAT(complaint_about("dense: {above: 2, algorithm: fp16, K: 4}\n"),
             Contains("p.yaml:4: dense.above"));
  CHECK_THAT(complaint_about("dense: {above: 0.1, algorithm: onebit, K: 4}\n"),
             Contains("p.yaml:4: dense.algorithm") && Contains("none, fp16 or bf16"));
  // A plan file must not cause a program to run.
  CHECK_THAT(complaint_about("dense: {above: 0.1, algorithm: mine.pse, K: 4}\n"),
             Contains("none, fp16 or bf16"));
  CHECK_THAT(complaint_about("dense: {above: 0.1, algorithm: 'fp16(x=1)', K: 4}\n"),
             Contains("p.yaml:4: dense.algorithm"));
  CHECK_THAT(complaint_about("dense: {above: 0.1, algorithm: fp16, K: 0}\n"),
             Contains("p.yaml:4: dense.K"));
  CHECK_THAT(complaint_about("dense: {above: 0.1, algorithm: fp16}\n"), Contains("K"));
}
