// Tests that an algorithm from outside of kernels/ needs only its registration: it can then be
// measured, planned with, predicted and replayed.

#include <catch2/catch.hpp>

#include "costs/description.hpp"
#include "costs/profile.hpp"
#include "kernels/registry/registry.hpp"
#include "planner/advice/advice.hpp"
#include "profiler/profiler.hpp"
#include "replay/replay.hpp"
#include "tests/foreign/upper_half.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/runtime/fixtures.hpp"

namespace hipress {
namespace {

using Catch::Contains;

/// Profile with costs of this algorithm only, measured on this machine.
costs::Profile measured() {
  return profiler::measure({.algorithms = {"upperhalf"},
                            .nodes = 2,
                            .transport = "memory",
                            .effort = profiler::Effort::kQuick,
                            .passes = 1,
                            .exchanges = 2},
                           [](const std::string&) {});
}

/// Plans for a link so slow that time is proportional to bytes.
planner::Advice planned_with(const std::string& profile) {
  planner::Request request;
  request.input = "vgg19";
  request.topology = "RING";
  request.nodes = 4;
  request.machines.profile = profile;
  request.machines.bandwidth = "200Mbps";
  request.algorithms = "upperhalf";
  request.evaluations = 40;
  request.jobs = 1;
  const planner::PreparedRequest prepared(request, planner::PlanForm::kYaml);
  return planner::advise(prepared);
}

TEST_CASE("a registered algorithm is in the table like others") {
  tests::register_upper_half();
  CHECK_THAT(kernels::algorithm_names(), Contains("lossless,upperhalf"));
  CHECK(kernels::names_algorithm("upperhalf"));
  REQUIRE(kernels::find_algorithm("upperhalf") != nullptr);
  CHECK(kernels::find_algorithm("upperhalf")->traffic.encode == 6);
  CHECK(kernels::algorithms().back().name == "upperhalf");
  CHECK(kernels::make_codec("upperhalf")->encoded_bytes(33) == 68);
  CHECK_THROWS_WITH(kernels::make_codec("upperhalf(x=1)"), Contains("no parameter 'x'"));
  CHECK_THROWS_WITH(kernels::make_codec("nothing"), Contains("upperhalf"));
}

TEST_CASE("an algorithm that the table cannot take is refused by name") {
  tests::register_upper_half();
  const auto refused = [](kernels::AlgorithmRow row, const std::string& why) {
    CHECK_THROWS_WITH(kernels::register_algorithm(std::move(row)), Contains(why));
  };
  const kernels::AlgorithmRow row = *kernels::find_algorithm("upperhalf");
  refused(row, "'upperhalf' cannot be registered: its name is taken");
  const auto named = [&](std::string_view name) {
    kernels::AlgorithmRow other = row;
    other.name = name;
    return other;
  };
  refused(named("onebit"), "taken");
  refused(named("none"), "taken");
  refused(named("a,b"), "needs letters");
  refused(named(""), "needs letters");
  kernels::AlgorithmRow unmade = named("unmade");
  unmade.make = nullptr;
  refused(unmade, "no 'make'");
  kernels::AlgorithmRow twice = named("twice");
  twice.parameters = {{.name = "x", .value = 1, .least = 0, .most = 2},
                      {.name = "x", .value = 1, .least = 0, .most = 2}};
  refused(twice, "'x' is there twice");
}

TEST_CASE("a registered algorithm is measured, and plans use what was measured", "[slow]") {
  tests::register_upper_half();
  const costs::Profile profile = measured();
  const costs::CodecCosts& codec = profile.codec("upperhalf");
  CHECK(codec.encode(1 << 22) > 0);
  CHECK(codec.decode_add(1 << 22) > 0);
  const tests::TemporaryFolder folder;
  costs::write_profile(folder.path("here.yaml"), profile);
  const planner::Advice advice = planned_with(folder.path("here.yaml"));
  REQUIRE(advice.found.plan.algorithms.size() == 1);
  CHECK(advice.found.plan.algorithms[0].name == "upperhalf");
  REQUIRE(advice.comparison.planned_s);
  REQUIRE(advice.comparison.uncompressed);
  CHECK(*advice.comparison.planned_s < 0.8 * advice.comparison.uncompressed->plan.iteration_s);
}

TEST_CASE("a profile that says how kernels are estimated has costs of a registered algorithm") {
  const costs::Profile before = costs::read_profile("h100-25g");
  tests::register_upper_half();
  // An encode moves 6 bytes per element, at 80 % of 3350 GB/s.
  const auto check = [](const costs::Profile& profile) {
    CHECK(profile.codec("upperhalf").encode(1 << 26) ==
          Approx(5e-6 + 6.0 * (1 << 26) / (0.8 * 3350e9)).epsilon(1e-4));
  };
  check(before);
  check(costs::read_profile("h100-25g"));
  costs::Profile bare = before;
  bare.codecs.erase("upperhalf");
  CHECK_THAT(costs::foreign_costs(bare, "upperhalf"), Contains("is charged an estimate"));
  CHECK_THROWS_WITH(costs::read_profile("sosp21").codec("upperhalf"),
                    Contains("has no costs of algorithm 'upperhalf'"));
}

TEST_CASE("a registered algorithm is replayed, and what ranks decode is verified") {
  tests::register_upper_half();
  for (const std::string topology : {"ps", "ring"}) {
    const runtime::Case made = runtime::make_case(topology, 3, 2, "upperhalf", {1, 31, 33, 100003});
    const replay::ReplayOptions twice{.warmup = 1, .iterations = 1, .progress = {}};
    CHECK(replay::replay_threads("memory", made.model, made.plan, made.graph, twice).verified);
  }
}

}  // namespace
}  // namespace hipress
