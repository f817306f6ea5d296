#include "report/spans.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/traces/one_message.hpp"

using namespace hipress;
using casync::Kind;
using casync::Picoseconds;
using casync::Task;
using report::Lane;
using report::NodeTimeline;
using report::Span;

namespace {

/// Tasks with their times, on two nodes. The graph has no edges, which do not matter to spans.
class Tasks {
 public:
  void add(Task task, std::int64_t start, std::int64_t end) {
    builder_.add(task);
    timeline_.start.emplace_back(start);
    timeline_.end.emplace_back(end);
  }
  NodeTimeline lanes(std::size_t most, std::uint32_t node = 0) {
    return report::node_timeline(std::move(builder_).build(), timeline_, {}, node, most);
  }

 private:
  casync::GraphBuilder builder_{2};
  traces::Timeline timeline_{"predicted", {}, {}};
};

Task send(std::uint32_t gradient, std::int64_t bytes, std::uint32_t from = 0) {
  return {
      .amount = bytes, .gradient = gradient, .node = from, .peer_offset = 1, .kind = Kind::kSend};
}

std::vector<std::string> names(const NodeTimeline& timeline) {
  std::vector<std::string> all;
  for (const Lane& lane : timeline.lanes) all.emplace_back(lane.name);
  return all;
}

/// True if the spans of a row do not overlap.
bool rows_are_free(const Lane& lane) {
  std::vector<Picoseconds> free_at(lane.rows);
  for (const Span& span : lane.spans) {
    if (span.start < free_at.at(span.row)) return false;
    free_at[span.row] = span.end;
  }
  return true;
}

}  // namespace

TEST_CASE("a node's lanes show what it computes, encodes and sends, another's what it receives") {
  const casync::TaskGraph graph = traces::one_message();
  const traces::Timeline timeline = traces::predicted_one_message();
  const NodeTimeline sender = report::node_timeline(graph, timeline, {1, 3}, 0, 100);
  CHECK(names(sender) ==
        std::vector<std::string>{"computation", "encode, decode, merge", "sending"});
  const Span& message = sender.lanes[2].spans.at(0);
  CHECK(message.start == Picoseconds(2'500'000));
  CHECK(message.end == Picoseconds(3'500'001));
  CHECK(message.amount == 20);
  CHECK(message.critical);
  CHECK_FALSE(sender.lanes[1].spans.at(0).critical);
  CHECK(sender.gap == Picoseconds{});

  const NodeTimeline receiver = report::node_timeline(graph, timeline, {}, 1, 100);
  CHECK(names(receiver) == std::vector<std::string>{"encode, decode, merge", "receiving"});
  CHECK(receiver.lanes[1].spans.at(0).kind == Kind::kSend);
}

TEST_CASE("of a folded graph, the tasks of any node are those of the one that stands for all") {
  casync::TaskGraph graph = traces::one_message();
  graph.folded = true;
  const NodeTimeline made =
      report::node_timeline(graph, traces::predicted_one_message(), {}, 0, 100);
  CHECK(names(made) ==
        std::vector<std::string>{"computation", "encode, decode, merge", "sending", "receiving"});
  CHECK(made.lanes[1].spans.size() == 2);  // node 0 encodes, node 1 decodes
}

TEST_CASE("tasks of one gradient that touch are one span, and others find rows") {
  Tasks tasks;
  tasks.add(send(0, 10), 0, 100);
  tasks.add(send(0, 20), 100, 200);  // begins where the first one ends
  tasks.add(send(0, 40), 300, 400);  // begins after a gap
  tasks.add(send(1, 80), 150, 350);
  const NodeTimeline made = tasks.lanes(100);
  REQUIRE(made.lanes.size() == 1);
  const Lane& lane = made.lanes.front();
  REQUIRE(lane.spans.size() == 3);
  CHECK(lane.spans[0].end == Picoseconds(200));
  CHECK(lane.spans[0].tasks == 2);
  CHECK(lane.spans[0].amount == 30);
  CHECK(lane.spans[1].first_unit == 1);
  CHECK(lane.rows == 2);
  CHECK(rows_are_free(lane));
}

TEST_CASE("what there is no room for is merged, and nothing of it is lost") {
  constexpr int kTasks = 3000, kGradients = 300;
  Tasks tasks;
  for (int i = 0; i < kTasks; ++i) {
    // The gradients' messages take turns, with a gap after each, so no spans touch.
    tasks.add(send(static_cast<std::uint32_t>(i % kGradients), 7), 10 * i, 10 * i + 9);
  }
  SECTION("within a gradient, over gaps") {
    const NodeTimeline made = tasks.lanes(1000);
    const Lane& lane = made.lanes.front();
    CHECK(lane.spans.size() <= 1000);
    CHECK(made.gap > Picoseconds{});
    CHECK_FALSE(made.joins_units);
    std::int64_t bytes = 0;
    for (const Span& span : lane.spans) bytes += span.amount;
    CHECK(bytes == 7 * kTasks);
    CHECK(rows_are_free(lane));
  }
  SECTION("over gradients, where even one span for each is too many") {
    const NodeTimeline made = tasks.lanes(20);
    const Lane& lane = made.lanes.front();
    CHECK(lane.spans.size() <= 20);
    CHECK(made.joins_units);
    std::uint32_t all = 0;
    for (const Span& span : lane.spans) all += span.tasks;
    CHECK(all == kTasks);
    CHECK(lane.spans.front().first_unit == 0);
    CHECK(lane.spans.front().start == Picoseconds{});
    CHECK(lane.spans.back().last_unit == kGradients - 1);
  }
}

TEST_CASE("no room at all leaves one span for each lane and kind") {
  Tasks tasks;
  for (int i = 0; i < 50; ++i) {
    tasks.add(send(static_cast<std::uint32_t>(i), 1), 1000 * i, 1000 * i + 1);
    tasks.add(send(static_cast<std::uint32_t>(i), 1, 1), 1000 * i, 1000 * i + 1);
  }
  const NodeTimeline made = tasks.lanes(0);
  REQUIRE(names(made) == std::vector<std::string>{"sending", "receiving"});
  for (const Lane& lane : made.lanes) CHECK(lane.spans.size() == 1);
}
