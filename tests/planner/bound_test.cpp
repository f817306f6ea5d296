#include "planner/bound/bound.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/planner/random_instance.hpp"

namespace hipress::planner {
namespace {

/// Checks lower bounds on all plans, and on single plans, against simulations of random plans.
void check_instance(std::uint64_t seed, const Features& features, int plans) {
  RandomInstance instance(seed, features);
  INFO("seed " << seed);
  const double bound =
      lower_bound(instance.model(), instance.machines(), instance.choices()).seconds;
  const double tight =
      lower_bound(instance.model(), instance.machines(), instance.choices(), {.branch_nodes = 30})
          .seconds;
  CHECK(tight >= bound * (1 - 1e-3));  // both bounds have a precision of 1e-4
  for (int i = 0; i < plans; ++i) {
    const std::size_t scheme = instance.random_scheme();
    const std::vector<std::uint16_t> options = instance.random_options();
    INFO(instance.describe(scheme));
    const double simulated = instance.iteration_s(scheme, options);
    CHECK(bound <= simulated);
    CHECK(tight <= simulated);
    const Choices one = instance.only(scheme, options);
    CHECK(lower_bound(instance.model(), instance.machines(), one).seconds <= simulated);
  }
}

TEST_CASE("the bound is below random plans of random instances", "[slow]") {
  const Features plain = {.grouping = false, .uneven = false, .layered = false};
  for (std::uint64_t seed = 0; seed < 60; ++seed) check_instance(seed, plain, 10);
}

TEST_CASE("the bound is below random plans with groups and batches", "[slow]") {
  const Features grouped = {.grouping = true, .uneven = false, .layered = false};
  for (std::uint64_t seed = 1000; seed < 1060; ++seed) check_instance(seed, grouped, 10);
}

TEST_CASE("the bound is below random plans on uneven machines", "[slow]") {
  const Features uneven = {.grouping = true, .uneven = true, .layered = false};
  for (std::uint64_t seed = 2000; seed < 2060; ++seed) check_instance(seed, uneven, 10);
}

TEST_CASE("the bound is below random plans on machines with layers", "[slow]") {
  for (std::uint64_t seed = 3000; seed < 3060; ++seed) check_instance(seed, {}, 10);
}

TEST_CASE("the bound of a single node is what coding takes") {
  // One node sends nothing: raw gradients end with backward, others are encoded and decoded.
  RandomInstance instance(1, {.uneven = false, .layered = false});
  models::Model model = instance.model();
  model.micro_steps = 3;
  model.optimizer_s = 1e-3;
  const Machines machines = {instance.machines().profile,
                             costs::cluster_from_profile(instance.machines().profile, 1)};
  Choices choices = instance.choices();
  const double computed = 1e-3 + 3 * (model.forward_s + models::backward_s(model));
  for (auto& options : choices.gradients) options = {{casync::kRaw, 1}, {0, 1}};
  CHECK(lower_bound(model, machines, choices).seconds == Approx(computed));
  for (auto& options : choices.gradients) options = {{0, 1}};
  const models::Gradient& last =
      *std::max_element(model.gradients.begin(), model.gradients.end(),
                        [](const auto& a, const auto& b) { return a.ready_s < b.ready_s; });
  const costs::CodecCosts& codec = machines.profile.codec("onebit");
  choices.schemes.resize(1);
  choices.schemes.front() = {.topology = "ps"};
  CHECK(lower_bound(model, machines, choices).seconds >=
        Approx(computed + codec.encode(last.elements) + codec.decode(last.elements)));
}

TEST_CASE("the bound is below random plans of 2000 random instances", "[long]") {
  for (std::uint64_t seed = 10000; seed < 12000; ++seed) check_instance(seed, {}, 20);
}

}  // namespace
}  // namespace hipress::planner
