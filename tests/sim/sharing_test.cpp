#include "sim/sharing.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

namespace hipress::sim {
namespace {

/// Runs all activities to their end. Returns the time at which each task ended.
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
  // Activities of 100 and 300 on one link run at 1/2 until 200: one ends, the other has 200 left.
  Sharing sharing;
  const auto link = sharing.add_capacity(1);
  sharing.start(0, 100, 1, uses({{link, 1}}), 0);
  sharing.start(1, 300, 1, uses({{link, 1}}), 0);
  CHECK(finish_all(sharing) == std::map<casync::TaskId, std::int64_t>{{0, 200}, {1, 400}});
}

TEST_CASE("max-min: who is held up elsewhere leaves the rest to the others") {
  // Link A carries flows 0, 1, 2; link B carries 2, 3, 4, 5. The four flows on B get 1/4 each, so 0
  // and 1 get (1 - 1/4)/2 = 3/8 each. 0 ends at 300/(3/8) = 800, when 2 has done 200.
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
  // Three threads, which want a core each, share two cores: at speed 2/3, work of 200 takes 300.
  Sharing sharing;
  const auto cores = sharing.add_capacity(2);
  for (casync::TaskId id = 0; id < 3; ++id) sharing.start(id, 200, 1, uses({{cores, 1}}), 0);
  for (const auto& [id, end] : finish_all(sharing)) {
    CHECK(end >= 300);
    CHECK(end <= 301);  // 2/3 is not a multiple of 2^-32
  }
}

TEST_CASE("weights: a flow of two threads gets two threads' share of the cores") {
  // Two codecs (weight 1, one core) and a flow (weight 2/1.5, 1.5 cores at full speed) share two
  // cores. At level l, codecs run at l, and the flow at l·4/3. The cores are full at 2·l +
  // 1.5·l·4/3 = 4·l = 2, so codecs run at 1/2 and the flow at 2/3.
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
  CHECK(pushed == 2);  // one end per activity; no end moved
}

/// An activity in the equations of fluid sharing.
struct Fluid {
  casync::TaskId task;
  double start, left, weight;
  Sharing::Uses uses;
  double speed = 0;
};

/// Sets speeds by progressive filling. Repeatedly finds the level at which a capacity becomes full
/// or an activity reaches full speed, and stops the activities concerned.
void fill_from_nothing(std::vector<Fluid*> open, std::vector<double> left) {
  constexpr double kTie = 1e-12;
  while (!open.empty()) {
    std::vector<double> demand(left.size());
    double level = 1e9;
    for (const Fluid* fluid : open) {
      level = std::min(level, 1 / fluid->weight);
      for (std::uint32_t i = 0; i < fluid->uses.count; ++i) {
        demand[fluid->uses.items[i].capacity] += fluid->uses.items[i].amount * fluid->weight;
      }
    }
    for (std::size_t c = 0; c < left.size(); ++c) {
      if (demand[c] > 0) level = std::min(level, std::max(0.0, left[c]) / demand[c]);
    }
    const std::vector<double> before = left;
    std::erase_if(open, [&](Fluid* fluid) {
      bool stops = 1 / fluid->weight <= level * (1 + kTie);
      for (std::uint32_t i = 0; i < fluid->uses.count; ++i) {
        const std::uint32_t c = fluid->uses.items[i].capacity;
        stops = stops || before[c] <= demand[c] * level * (1 + kTie);
      }
      if (!stops) return false;
      fluid->speed = level * fluid->weight;
      for (std::uint32_t i = 0; i < fluid->uses.count; ++i) {
        left[fluid->uses.items[i].capacity] -= fluid->uses.items[i].amount * fluid->speed;
      }
      return true;
    });
  }
}

std::map<casync::TaskId, double> ends_of(std::vector<Fluid> all, const std::vector<double>& left) {
  std::map<casync::TaskId, double> ends;
  double now = 0;
  while (ends.size() < all.size()) {
    std::vector<Fluid*> running;
    double until = 1e18;
    for (Fluid& fluid : all) {
      if (fluid.start > now) until = std::min(until, fluid.start);
      if (fluid.start <= now && fluid.left > 0) running.push_back(&fluid);
    }
    fill_from_nothing(running, left);
    for (const Fluid* fluid : running) until = std::min(until, now + fluid->left / fluid->speed);
    for (Fluid* fluid : running) {
      fluid->left -= (until - now) * fluid->speed;
      if (fluid->left > 1e-3) continue;
      fluid->left = 0;
      ends[fluid->task] = until;
    }
    now = until;
  }
  return ends;
}

TEST_CASE("however activities come and go, speeds are those of progressive filling") {
  // Flows between 8 nodes come and go; most have equal weight. Every third also uses one of two
  // uplinks, and some use only part of a link. A speed s is rounded down by at most 2^-32, a
  // relative error of 2^-32/s. Speeds are above 1/100; errors also shift to other flows, so ends
  // may differ by 1e-5.
  constexpr std::uint32_t kNodes = 8, kFlows = 300;
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    std::mt19937 draws(seed);
    const auto below = [&](std::uint32_t bound) {
      return static_cast<std::uint32_t>(draws() % bound);
    };
    Sharing sharing;
    std::vector<double> amounts(2 * kNodes, 1);
    amounts.insert(amounts.end(), {0.5, 1.75});
    for (const double amount : amounts) sharing.add_capacity(amount);
    std::vector<Fluid> flows;
    double start = 0;
    for (casync::TaskId id = 0; id < kFlows; ++id) {
      Sharing::Uses links;
      const double part = below(8) == 0 ? 0.75 : 1;
      links.add(below(kNodes), part);
      links.add(kNodes + below(kNodes), 1);
      if (below(3) == 0) links.add(2 * kNodes + below(2), 0.5);
      start += below(4) == 0 ? 2'000'000 * below(5) : 0;
      flows.push_back(
          {id, start, 1'000'000.0 + below(9'000'000), below(6) == 0 ? 2.0 : 1.0, links});
    }
    EventQueue events;
    std::map<casync::TaskId, std::int64_t> ends;
    std::size_t next = 0;
    while (ends.size() < flows.size()) {
      const bool starts =
          next < flows.size() &&
          (events.empty() || static_cast<std::int64_t>(flows[next].start) <= events.next_time());
      if (!starts) {
        const Event event = events.pop();
        if (sharing.stale(event)) continue;
        ends[sharing.finish(event.subject)] = event.time;
        sharing.settle(event.time, events);
        continue;
      }
      const auto now = static_cast<std::int64_t>(flows[next].start);
      for (; next < flows.size() && static_cast<std::int64_t>(flows[next].start) == now; ++next) {
        const Fluid& flow = flows[next];
        sharing.start(flow.task, static_cast<std::int64_t>(flow.left), flow.weight, flow.uses, now);
      }
      sharing.settle(now, events);
    }
    for (const auto& [id, end] : ends_of(flows, amounts)) {
      INFO("seed " << seed << ", flow " << id);
      CHECK(std::abs(static_cast<double>(ends.at(id)) - end) < 1e-5 * end);
    }
  }
}

}  // namespace
}  // namespace hipress::sim
