#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "plans/plan_file.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;

TEST_CASE("a fingerprint differs where the exchange would") {
  using Change = std::function<void(models::Model&, casync::Plan&)>;
  const std::vector<Change> changes = {
      [](models::Model&, casync::Plan&) {},
      [](models::Model& model, casync::Plan&) { model.gradients[0].name = "z"; },
      [](models::Model& model, casync::Plan&) { model.gradients[0].elements = 101; },
      [](models::Model& model, casync::Plan&) {
        model.gradients[0].dtype = models::Dtype::kFloat16;
      },
      [](models::Model& model, casync::Plan&) {
        std::swap(model.gradients[0], model.gradients[2]);
      },
      [](models::Model&, casync::Plan& plan) { plan.strategy = "ring"; },
      [](models::Model&, casync::Plan& plan) { plan.raw_strategy = "allreduce"; },
      [](models::Model&, casync::Plan& plan) { plan.bulk.threshold_bytes = 4096; },
      [](models::Model&, casync::Plan& plan) { plan.batch.threshold_bytes = 4096; },
      [](models::Model&, casync::Plan& plan) {
        plan.batch = {.threshold_bytes = 4096, .wait = casync::Picoseconds(0)};
      },
      [](models::Model&, casync::Plan& plan) {
        plan.bulk_groups = {{0, 2}};
      },
      [](models::Model&, casync::Plan& plan) { plan.pipelining = false; },
      [](models::Model&, casync::Plan& plan) { plan.nodes = 5; },
      [](models::Model&, casync::Plan& plan) { plan.decisions[1].partitions = 3; },
      [](models::Model&, casync::Plan& plan) { plan.decisions[1].algorithm = casync::kRaw; },
      [](models::Model&, casync::Plan& plan) { plan.algorithms[0].name = "onebit(x=1)"; },
  };
  std::set<std::string> fingerprints;
  for (const Change& change : changes) {
    models::Model model = small_model();
    casync::Plan plan = resolve_plan("all", {model, "ps", 4}).plan;
    change(model, plan);
    const std::string fingerprint = plan_fingerprint(model, plan);
    CHECK(fingerprint.size() == 16);
    fingerprints.insert(fingerprint);
  }
  CHECK(fingerprints.size() == changes.size());
}

TEST_CASE("a fingerprint is the same where the exchange is") {
  models::Model model = small_model();
  const casync::Plan plan = resolve_plan("all", {model, "ps", 4}).plan;
  const std::string fingerprint = plan_fingerprint(model, plan);
  model.name = "another file's name";
  model.gradients[0].ready_s = 1;
  CHECK(plan_fingerprint(model, plan) == fingerprint);
  CHECK(plan_fingerprint(model, resolve_plan("onebit", {model, "ps", 4}).plan) == fingerprint);
}
