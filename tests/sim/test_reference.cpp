#include <catch2/catch.hpp>

#include "tests/sim/random_scenario.hpp"
#include "tests/sim/reference.hpp"

namespace hipress::sim {
namespace {

void require_same_times(std::uint64_t seed) {
  const RandomScenario scenario(seed);
  casync::check(scenario.graph());
  const TaskCosts costs = scenario.costs();
  const traces::Timeline slow =
      simulate_slowly(scenario.graph(), costs, scenario.cluster(), scenario.options());
  const Result fast = simulate(scenario.graph(), costs, scenario.cluster(), scenario.options());
  for (casync::TaskId id = 0; id < scenario.graph().tasks(); ++id) {
    if (fast.timeline.start[id] == slow.start[id] && fast.timeline.end[id] == slow.end[id])
      continue;
    FAIL("seed " << seed << ", network " << to_string(scenario.options().network) << ", task " << id
                 << " (" << casync::describe(scenario.graph(), id)
                 << "): " << fast.timeline.start[id].count() << " to "
                 << fast.timeline.end[id].count() << " ps, but the reference says "
                 << slow.start[id].count() << " to " << slow.end[id].count());
  }
}

TEST_CASE("random graphs: every task's times are those of the reference simulator") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) require_same_times(seed);
  SUCCEED("300 seeds");
}

TEST_CASE("random graphs: the same for 10000 seeds", "[long]") {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) require_same_times(seed);
  SUCCEED("10000 seeds");
}

}  // namespace
}  // namespace hipress::sim
