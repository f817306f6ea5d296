#include "replay/replay.hpp"

#include <catch2/catch.hpp>

#include "tests/runtime/fixtures.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;

TEST_CASE("a replay's meter is read as an iteration starts and once it has ended") {
  const Case made = make_case("ring", 2, 2, "onebit", {100, 7});
  const auto meter = [] {
    thread_local double reading = 0;  // ranks are threads
    return reading += 0.5;
  };
  const ReplayResult metered =
      replay_threads("memory", made.model, made.plan, made.graph,
                     {.warmup = 2, .iterations = 3, .progress = {}, .meter = meter});
  // Each of the two ranks contributes 0.5.
  CHECK(metered.metered == std::vector<double>{1, 1, 1});

  const ReplayResult without = replay_threads("memory", made.model, made.plan, made.graph,
                                              {.iterations = 2, .progress = {}});
  CHECK(without.metered == std::vector<double>{0, 0});
}
