#include "report/path_runs.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "tests/traces/one_message.hpp"

using namespace hipress;
using casync::Kind;
using casync::Picoseconds;

namespace {

Picoseconds of(const report::PathRun& run, Kind kind) {
  return run.by_kind[static_cast<std::size_t>(kind)];
}

}  // namespace

TEST_CASE("a critical path is computation, and then a gradient") {
  const casync::TaskGraph graph = traces::one_message();
  const auto runs = report::path_runs(graph, traces::predicted_one_message(), {0, 1, 2, 3, 4, 5});
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].is_computation);
  CHECK(of(runs[0], Kind::kBackward) == Picoseconds(2'000'000));
  CHECK_FALSE(runs[1].is_computation);
  CHECK(runs[1].unit == 0);
  CHECK(runs[1].start == runs[0].end);
  CHECK(of(runs[1], Kind::kEncode) == Picoseconds(500'000));
  CHECK(of(runs[1], Kind::kSend) == Picoseconds(1'000'001));
  CHECK(of(runs[1], Kind::kDecode) == Picoseconds(250'000));
  CHECK(runs[1].end == Picoseconds(3'750'001));
}

TEST_CASE("what nothing is done in is the wire's, and lengths add up to the path's") {
  const casync::TaskGraph graph = traces::one_message();
  // The message arrives 300 ns after its Send has ended.
  const auto late = traces::timeline("late", {{0, 0},
                                              {0, 2'000'000},
                                              {2'000'000, 2'500'000},
                                              {2'500'000, 3'500'000},
                                              {3'800'000, 3'800'000},
                                              {3'800'000, 4'000'000}});
  const auto runs = report::path_runs(graph, late, {1, 2, 3, 4, 5});
  REQUIRE(runs.size() == 2);
  CHECK(runs[1].wire == Picoseconds(300'000));
  const Picoseconds all = std::accumulate(
      runs.begin(), runs.end(), Picoseconds{},
      [](Picoseconds sum, const report::PathRun& run) { return sum + (run.end - run.start); });
  CHECK(all == Picoseconds(4'000'000));
}
