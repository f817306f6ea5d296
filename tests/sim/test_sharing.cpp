#include <catch2/catch.hpp>
#include <map>

#include "sim/sharing.hpp"

namespace hipress::sim {
namespace {

/// Runs all activities to their end; returns when each task ended. Nothing starts later.
std::map<casync::TaskId, std::int64_t> finish_all(Sharing& sharing) {
  std::map<casync::TaskId, std::int64_t> ends;
  EventQueue events;
  sharing.settle(0, events);
  while (!events.empty()) {
    const Event event = events.pop();
    if (sharing.stale(event)) continue;
    ends[sharing.finish(event.subject)] = event.time;
    sharing.settle(event.time, events);
  }
  return ends;
}

Sharing::Uses uses(std::initializer_list<Sharing::Use> list) {
  Sharing::Uses all;
  for (const Sharing::Use& use : list) all.add(use.capacity, use.amount);
  return all;
}

TEST_CASE("alone, an activity runs at full speed") {
  Sharing sharing;
  const auto link = sharing.add_capacity(1);
  sharing.start(7, 1000, 1, uses({{link, 1}}), 0);
  sharing.start(8, 500, 1, uses({}), 0);
  CHECK(finish_all(sharing) == std::map<casync::TaskId, std::int64_t>{{7, 1000}, {8, 500}});
}

TEST_CASE("n equals on one link each get exactly 1/n") {
  Sharing sharing;
  const auto link = sharing.add_capacity(1);
  for (casync::TaskId id = 0; id < 7; ++id) sharing.start(id, 1'000'003, 1, uses({{link, 1}}), 0);
  for (const auto& [id, end] : finish_all(sharing)) CHECK(end == 7 * 1'000'003);
}

TEST_CASE("what one leaves, the other takes") {
  // Works 100 and 300 on one link: both at 1/2 until 200, when the first ends; the second has 200
  // left.
  Sharing sharing;
  const auto link = sharing.add_capacity(1);
  sharing.start(0, 100, 1, uses({{link, 1}}), 0);
  sharing.start(1, 300, 1, uses({{link, 1}}), 0);
  CHECK(finish_all(sharing) == std::map<casync::TaskId, std::int64_t>{{0, 200}, {1, 400}});
}

TEST_CASE("max-min: who is held up elsewhere leaves the rest to the others") {
  // Link A carries flows 0, 1, 2; link B carries 2 and 3, 4, 5 (four flows: 1/4 each). Flow 2 stops
  // at 1/4, so 0 and 1 get (1 - 1/4)/2 = 3/8 each. While all run: 0 ends at 300/(3/8) = 800; by
  // then 2 has done 200.
  Sharing sharing;
  const auto a = sharing.add_capacity(1);
  const auto b = sharing.add_capacity(1);
  sharing.start(0, 300, 1, uses({{a, 1}}), 0);
  sharing.start(1, 300, 1, uses({{a, 1}}), 0);
  sharing.start(2, 200, 1, uses({{a, 1}, {b, 1}}), 0);
  for (casync::TaskId id = 3; id < 6; ++id) sharing.start(id, 200, 1, uses({{b, 1}}), 0);
  const auto ends = finish_all(sharing);
  for (const auto& [id, end] : ends) CHECK(end == 800);
}

TEST_CASE("threads share cores") {
  // Three threads of one core each on two cores: 2/3 speed, so 200 of work takes 300.
  Sharing sharing;
  const auto cores = sharing.add_capacity(2);
  for (casync::TaskId id = 0; id < 3; ++id) sharing.start(id, 200, 1, uses({{cores, 1}}), 0);
  for (const auto& [id, end] : finish_all(sharing)) {
    CHECK(end >= 300);
    CHECK(end <= 301);  // 2/3 is not a multiple of 2^-32
  }
}

TEST_CASE("weights: a flow of two threads gets two threads' share of the cores") {
  // Two codecs (weight 1, one core) and a flow that needs 1.5 cores at full speed with weight
  // 2/1.5, on two cores. Level l: codecs at l, flow at l·4/3, cores 2·l + 1.5·l·4/3 = 4·l = 2, so l
  // = 1/2: codecs 1/2, flow 2/3.
  Sharing sharing;
  const auto cores = sharing.add_capacity(2);
  sharing.start(0, 300, 1, uses({{cores, 1}}), 0);
  sharing.start(1, 300, 1, uses({{cores, 1}}), 0);
  sharing.start(2, 400, 2 / 1.5, uses({{cores, 1.5}}), 0);
  for (const auto& [id, end] : finish_all(sharing)) {
    CHECK(end >= 600);
    CHECK(end <= 601);
  }
}

TEST_CASE("a change does not disturb what is not connected to it") {
  Sharing sharing;
  EventQueue events;
  const auto a = sharing.add_capacity(1);
  const auto b = sharing.add_capacity(1);
  sharing.start(0, 100, 1, uses({{a, 1}}), 0);
  sharing.settle(0, events);
  sharing.start(1, 100, 1, uses({{b, 1}}), 10);
  sharing.settle(10, events);
  int pushed = 0;
  for (; !events.empty(); events.pop()) ++pushed;
  CHECK(pushed == 2);  // one completion each, none moved
}

}  // namespace
}  // namespace hipress::sim
