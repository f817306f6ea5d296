#include "tests/sim/reference.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/random_scenario.hpp"

namespace hipress::sim {
namespace {

using enum RandomScenario::Hierarchy;

/// Returns the number of tasks that were compared.
std::size_t require_same_times(std::uint64_t seed, RandomScenario::Hierarchy hierarchy) {
  const RandomScenario scenario(seed, hierarchy);
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
  return scenario.graph().tasks();
}

void require_same_times_of(std::uint64_t seeds, RandomScenario::Hierarchy hierarchy) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    compared += require_same_times(seed, hierarchy);
  CHECK(compared >= 5 * seeds);  // the smallest graphs have 5 tasks
}

TEST_CASE("random graphs: every task's times are those of the reference simulator") {
  require_same_times_of(300, kNone);
}

TEST_CASE("random graphs: the same for 10000 seeds", "[long]") {
  require_same_times_of(10'000, kNone);
}

TEST_CASE("random graphs on hosts of several nodes and in racks: the same") {
  require_same_times_of(300, kSome);
}

TEST_CASE("random graphs on hosts of several nodes and in racks: the same for 10000 seeds",
          "[long]") {
  require_same_times_of(10'000, kSome);
}

}  // namespace
}  // namespace hipress::sim
