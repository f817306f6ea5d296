#include "traces/timeline.hpp"

#include <catch2/catch.hpp>

#include "casync/graph_builder.hpp"
#include "tests/traces/one_message.hpp"

namespace hipress::traces {
namespace {

TEST_CASE("makespan is the last end, and 0 without tasks") {
  CHECK(makespan(predicted_one_message()) == Picoseconds(3'750'001));
  CHECK(makespan(Timeline{}) == Picoseconds(0));
  // The last task by ID need not end last.
  CHECK(makespan(timeline("t", {{0, 9}, {1, 4}})) == Picoseconds(9));
}

TEST_CASE("busy time is summed by kind over all nodes") {
  const auto graph = one_message();
  const auto rows = compare_by_kind(graph, predicted_one_message(), measured_one_message());
  // There is one row per kind in the graph, in the order of casync::Kind, and none for Merge.
  REQUIRE(rows.size() == 6);
  CHECK(rows[0].kind == casync::Kind::kForward);
  CHECK(rows[1].kind == casync::Kind::kBackward);
  CHECK(rows[1].tasks == 1);
  CHECK(rows[1].predicted_s == Approx(2e-6));
  CHECK(rows[1].measured_s == Approx(2e-6));
  CHECK(rows[2].kind == casync::Kind::kEncode);
  CHECK(rows[2].predicted_s == Approx(0.5e-6));
  CHECK(rows[2].measured_s == Approx(1e-6));
  CHECK(rows[3].kind == casync::Kind::kDecode);
  CHECK(rows[4].kind == casync::Kind::kSend);
  CHECK(rows[4].predicted_s == Approx(1.000001e-6).epsilon(1e-12));
  CHECK(rows[5].kind == casync::Kind::kRecv);
  CHECK(rows[5].measured_s == 0);
}

TEST_CASE("tasks of one kind are added up") {
  casync::GraphBuilder builder(3);
  for (std::uint32_t node = 0; node < 3; ++node) {
    casync::Task task;
    task.kind = casync::Kind::kMerge;
    task.node = node;
    builder.add(task);
  }
  const auto graph = std::move(builder).build();
  // The sums are 1 + 2 + 3 us and 4 + 5 + 6 us.
  const auto rows =
      compare_by_kind(graph, timeline("p", {{0, 1'000'000}, {0, 2'000'000}, {7, 3'000'007}}),
                      timeline("m", {{0, 4'000'000}, {0, 5'000'000}, {0, 6'000'000}}));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].tasks == 3);
  CHECK(rows[0].predicted_s == Approx(6e-6));
  CHECK(rows[0].measured_s == Approx(15e-6));
}

TEST_CASE("a timeline of another graph is refused by its title") {
  const auto graph = one_message();
  const auto foreign = timeline("elsewhere", {{0, 1}});
  CHECK_THROWS_WITH(
      compare_by_kind(graph, predicted_one_message(), foreign),
      Catch::Contains("'elsewhere' holds 1 starts and 1 ends") && Catch::Contains("6 tasks"));
  CHECK_THROWS_AS(compare_by_kind(graph, foreign, measured_one_message()), std::invalid_argument);
}

}  // namespace
}  // namespace hipress::traces
