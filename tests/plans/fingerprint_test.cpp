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
        model.gradients[0].shape = {10, 10};
      },
      [](models::Model& model, casync::Plan&) {
        model.gradients[0].shape = {20, 5};
      },
      [](models::Model& model, casync::Plan&) {
        std::swap(model.gradients[0], model.gradients[2]);
      },
      [](models::Model&, casync::Plan& plan) { plan.topology = "ring"; },
      [](models::Model&, casync::Plan& plan) { plan.raw_topology = "allreduce"; },
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
      [](models::Model&, casync::Plan& plan) { plan.gpus_per_node = 2; },
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
  model.gradients[0].shape = {100};  // a shape of one dimension counts like none
  CHECK(plan_fingerprint(model, plan) == fingerprint);
  CHECK(plan_fingerprint(model, resolve_plan("onebit", {model, "ps", 4}).plan) == fingerprint);
}

TEST_CASE("a fingerprint differs where ready times make other groups or another order") {
  // Two ranks read different ready times of gradient a (400 bytes). Gradient c has 200 bytes.
  models::Model model = small_model();
  casync::Plan plan = resolve_plan("none", {model, "ps", 4}).plan;
  const auto differ = [&](double ready_of_a_s, double other_s) {
    model.gradients[0].ready_s = ready_of_a_s;
    const std::string one = plan_fingerprint(model, plan);
    model.gradients[0].ready_s = other_s;
    return plan_fingerprint(model, plan) != one;
  };
  model.gradients[2].ready_s = 5e-3;
  SECTION("within a group by rule, and beyond it") {
    plan.bulk = {.threshold_bytes = 4096, .wait = casync::Picoseconds(1'000'000'000)};
    CHECK(differ(4.5e-3, 3e-3));        // the first is within 1 ms of c, the second is not
    CHECK_FALSE(differ(4.5e-3, 4e-3));  // both are before c, and in one group with it
    CHECK(differ(4.5e-3, 5.5e-3));      // in the second group, c comes before a
  }
  SECTION("the members' order in a group by hand") {
    plan.bulk_groups = {{0, 2}};
    CHECK(differ(4e-3, 6e-3));
    CHECK_FALSE(differ(3e-3, 4e-3));
  }
  SECTION("the order of all-reduces") {
    plan.raw_topology = "allreduce";
    CHECK(differ(4e-3, 6e-3));
    CHECK_FALSE(differ(3e-3, 4e-3));
  }
  SECTION("the order of everything without pipelining") {
    plan.pipelining = false;
    CHECK(differ(4e-3, 6e-3));
  }
  SECTION("nothing of all that") { CHECK_FALSE(differ(4e-3, 6e-3)); }
}
