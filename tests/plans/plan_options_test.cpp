#include "plans/plan_options.hpp"

#include <catch2/catch.hpp>

#include "io/error.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;
using Catch::Contains;

namespace {

ResolvedPlan changed(const PlanOptions& options, const std::string& plan = "all") {
  const models::Model model = small_model();
  const PlanContext context{model, "ring", 4};
  ResolvedPlan resolved = resolve_plan(plan, context);
  apply(options, context, resolved);
  return resolved;
}

std::string refusal(const PlanOptions& options) {
  return complaint([&] { changed(options); });
}

}  // namespace

TEST_CASE("options change what they name and leave the rest") {
  const casync::Plan plan = changed({.bulk_threshold = "64KiB",
                                     .bulk_wait = "1ms",
                                     .batch_threshold = "4KiB",
                                     .batch_limit = "1MiB",
                                     .raw_allreduce = true,
                                     .no_pipelining = true})
                                .plan;
  CHECK(plan.bulk.threshold_bytes == 65536);
  CHECK(plan.bulk.wait == casync::Picoseconds(1'000'000'000));
  CHECK_FALSE(plan.bulk.limit_bytes.has_value());
  CHECK(plan.batch.threshold_bytes == 4096);
  CHECK(plan.batch.limit_bytes == 1 << 20);
  CHECK(plan.raw_topology == "allreduce");
  CHECK_FALSE(plan.pipelining);
  const casync::Plan same = changed({}).plan;
  CHECK(same.bulk == casync::Aggregation{});
  CHECK(same.pipelining);
}

TEST_CASE("without selection everything is compressed with the plan's algorithm and K = N") {
  const ResolvedPlan chosen = changed({.no_selection = true}, "threshold:1000");
  for (std::size_t g = 0; g < 3; ++g) {
    CHECK(algorithm_of(chosen, g) == "onebit");
    CHECK(partitions_of(chosen, g) == 4);
  }
  CHECK(algorithm_of(changed({.no_selection = true}, "tbq(tau=0.25)"), 2) == "tbq(tau=0.25)");
  const ResolvedPlan none = changed({.no_selection = true}, "none");  // takes the default algorithm
  CHECK(algorithm_of(none, 0) == "onebit");
  CHECK(none.codecs.size() == none.plan.algorithms.size());
}

TEST_CASE("without selection a raw half-precision gradient is compressed as the others") {
  models::Model model = small_model();
  model.gradients[1].dtype = models::Dtype::kFloat16;
  const PlanContext context{model, "ring", 4};
  for (const std::string plan : {"none", "threshold:1000000"}) {
    CAPTURE(plan);  // the plan compresses nothing, and its gradient 1 is cast to fp16
    ResolvedPlan resolved = resolve_plan(plan, context);
    apply({.no_selection = true}, context, resolved);
    for (std::size_t g = 0; g < 3; ++g) {
      CHECK(algorithm_of(resolved, g) == "onebit");
      CHECK(partitions_of(resolved, g) == 4);
    }
    REQUIRE(resolved.codecs.size() == resolved.plan.algorithms.size());
    for (std::size_t i = 0; i < resolved.codecs.size(); ++i) {
      CHECK(resolved.codecs[i]->traits().half_precision ==
            resolved.plan.algorithms[i].half_precision);
    }
  }
}

TEST_CASE("without bulk neither groups nor batches are left") {
  const models::Model model = small_model();
  const PlanContext context{model, "ring", 4};
  ResolvedPlan resolved = resolve_plan("all", context);
  resolved.plan.bulk.threshold_bytes = resolved.plan.batch.threshold_bytes = 4096;
  resolved.plan.bulk_groups = {{0, 2}};
  apply({.no_bulk = true}, context, resolved);
  CHECK(resolved.plan.bulk == casync::Aggregation{});
  CHECK(resolved.plan.batch == casync::Aggregation{});
  CHECK(resolved.plan.bulk_groups.empty());
}

TEST_CASE("without bulk, no option of groups or batches is left to be given") {
  const models::Model model = small_model();
  const PlanContext context{model, "ring", 4};
  for (const auto& [name, options] : std::vector<std::pair<std::string, PlanOptions>>{
           {"`bulk_threshold`", {.bulk_threshold = "1KiB", .no_bulk = true}},
           {"`bulk_wait`", {.bulk_wait = "1ms", .no_bulk = true}},
           {"`bulk_limit`", {.bulk_limit = "1MiB", .no_bulk = true}},
           {"`batch_threshold`", {.batch_threshold = "1KiB", .no_bulk = true}},
           {"`batch_wait`", {.batch_wait = "1ms", .no_bulk = true}},
           {"`batch_limit`", {.batch_limit = "1MiB", .no_bulk = true}}}) {
    ResolvedPlan resolved = resolve_plan("all", context);
    resolved.plan.bulk.threshold_bytes = resolved.plan.batch.threshold_bytes = 4096;
    CHECK(complaint([&, &options = options] { apply(options, context, resolved); }) ==
          "`no_bulk` contradicts " + name + "; drop one");
  }
}

TEST_CASE("options that make no sense are refused by name") {
  CHECK_THAT(refusal({.bulk_threshold = "64"}), Contains("`bulk_threshold`") && Contains("'64'"));
  CHECK_THAT(refusal({.bulk_threshold = "-1KiB"}), Contains("`bulk_threshold`"));
  CHECK_THAT(refusal({.bulk_threshold = "1KiB", .bulk_wait = "5"}),
             Contains("`bulk_wait`") && Contains("'5'"));
  CHECK_THAT(refusal({.batch_threshold = "1KiB", .batch_wait = "-1ms"}), Contains("`batch_wait`"));
  CHECK_THAT(refusal({.batch_threshold = "many"}), Contains("`batch_threshold`"));
  CHECK_THAT(refusal({.bulk_threshold = "1KiB", .bulk_wait = "1e9s"}),
             Contains("`bulk_wait` must be at most 1e+06s, got '1e9s'"));
  CHECK_THAT(refusal({.bulk_wait = "1ms"}), Contains("`bulk_wait` needs `bulk_threshold`"));
  CHECK_THAT(refusal({.batch_limit = "1MiB"}), Contains("`batch_limit` needs `batch_threshold`"));
}

TEST_CASE("a plan YAML holds bulk groups, batches and how raw gradients travel") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  const PlanContext context{model, "ring", 4};
  ResolvedPlan resolved = resolve_plan("all", context);
  resolved.plan.bulk = {.threshold_bytes = 65536, .wait = casync::Picoseconds(1'500'000'001)};
  resolved.plan.bulk_groups = {{2, 0}};
  resolved.plan.batch = {.threshold_bytes = 100, .limit_bytes = 12345};
  resolved.plan.raw_topology = "allreduce";
  write_plan_yaml(folder.path("plan.yaml"), model, resolved.plan, {});
  const casync::Plan read = resolve_plan(folder.path("plan.yaml"), context).plan;
  CHECK(read.bulk == resolved.plan.bulk);
  CHECK(read.batch == resolved.plan.batch);
  CHECK(read.bulk_groups == resolved.plan.bulk_groups);
  CHECK(read.raw_topology == "allreduce");
  CHECK(plan_fingerprint(model, read) == plan_fingerprint(model, resolved.plan));
}

TEST_CASE("what a plan YAML says wrongly of groups and batches is refused with its line") {
  const models::Model model = small_model();
  const PlanContext context{model, "ps", 4};
  const auto complaint_about = [&](const std::string& lines) {
    return complaint_about_plan("plan.yaml",
                                "schema: hipress.plan/1\ntopology: ps\nnodes: 4\n" + lines +
                                    "gradients:\n"
                                    "  - {name: a, elements: 100, algorithm: none, K: 4}\n"
                                    "  - {name: b, elements: 300000, algorithm: onebit, K: 4}\n"
                                    "  - {name: c, elements: 50, algorithm: none, K: 4}\n",
                                context);
  };
  CHECK_THAT(complaint_about("bulk: {threshold: 64}\n"),
             Contains("plan.yaml:4:") && Contains("bulk.threshold") && Contains("64KiB"));
  CHECK_THAT(complaint_about("bulk: {threshold: 64KiB, wait: -1ms}\n"), Contains("bulk.wait"));
  CHECK_THAT(complaint_about("bulk: {threshold: 64KiB, wait: 1e9s}\n"),
             Contains("plan.yaml:4: bulk.wait: must be 0s to 1e+06s"));
  CHECK_THAT(complaint_about("bulk: {wait: 1ms}\n"), Contains("bulk.wait: needs threshold"));
  CHECK_THAT(complaint_about("batch: {size: 1KiB}\n"),
             Contains("plan.yaml:4:") && Contains("size"));
  CHECK_THAT(complaint_about("bulk: {groups: [[a, d]]}\n"),
             Contains("plan.yaml:4:") && Contains("gradient 'd' is not in model 'small'"));
  CHECK_THAT(
      complaint_about("bulk: {groups: [[a, c], [a]]}\n"),
      Contains("plan.yaml:4:") && Contains("gradient 'a' is in a bulk group already, in line 4"));
  CHECK_THAT(complaint_about("bulk: {groups: [[a, b]]}\n"),
             Contains("'b' cannot be in a bulk group with gradient 'a'"));
  CHECK_THAT(complaint_about("raw: mesh\n"), Contains("plan.yaml:4:") && Contains("'mesh'"));
}
