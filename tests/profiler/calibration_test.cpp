#include "profiler/calibration.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <utility>

#include "profiler/sampling.hpp"

namespace hipress::profiler {
namespace {

using casync::Kind;
using casync::TaskId;

std::map<Kind, int> count(const casync::TaskGraph& graph) {
  std::map<Kind, int> counts;
  for (TaskId id = 0; id < graph.tasks(); ++id) ++counts[graph[id].kind];
  return counts;
}

TEST_CASE("codec calibrations code every slice once on every rank, and send nothing") {
  const std::vector<CodedSlice> slices = {{10}, {1000}, {1000}, {1000}, {2000}};
  const Calibration calibration = codec_calibration(3, "onebit", slices, 2);
  casync::check(calibration.graph);
  auto counts = count(calibration.graph);
  CHECK(counts[Kind::kEncode] == 5 * 2);
  CHECK(counts[Kind::kDecode] == 2 * 5 * 2);  // per slice and rank, one overwrites and one adds
  CHECK(counts[Kind::kSend] == 0);
  std::map<std::int64_t, int> elements;
  for (TaskId id = 0; id < calibration.graph.tasks(); ++id) {
    CHECK(calibration.graph[id].node < 2);
    if (calibration.graph[id].kind == Kind::kEncode) ++elements[calibration.graph[id].amount];
  }
  CHECK(elements == std::map<std::int64_t, int>{{10, 2}, {1000, 6}, {2000, 2}});
  CHECK(calibration.plan.codecs.size() == 1);
}

TEST_CASE("codec calibrations encode the third of slices before anything else, if asked") {
  for (const std::uint32_t nodes : {2, 3}) {
    const std::vector<CodedSlice> slices = {{10}, {1000, true}, {1000, true}, {500, true}, {20}};
    const Calibration calibration = codec_calibration(nodes, "onebit", slices, 2);
    const casync::TaskGraph& graph = calibration.graph;
    casync::check(graph);
    std::array<int, 2> quotients{};
    std::map<TaskId, int> before;  // number of quotients for which each encode waits
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      if (!casync::encodes_quotients(graph[id], graph.divisor)) continue;
      ++quotients.at(graph[id].node);
      CHECK(graph[id].role == casync::Role::kServer);  // gives it a residual of its own
      for (const TaskId next : casync::successors(graph, id)) {
        CHECK(graph[next].kind == Kind::kEncode);
        CHECK(graph[next].flags == 0);
        ++before[next];
      }
    }
    CHECK(quotients == std::array{3, 3});
    // All 5 encodes of a node wait for its last quotient. If another quotient is of an encode's own
    // slice, it waits for that one, too: 2 encodes wait for two quotients, 3 for one.
    CHECK(before.size() == slices.size() * 2);
    std::map<int, int> waiting;
    for (const auto& [encode, number] : before) ++waiting[number];
    CHECK(waiting == std::map<int, int>{{1, 3 * 2}, {2, 2 * 2}});
    CHECK(count(graph)[Kind::kEncode] == (5 + 3) * 2);
    CHECK(count(graph)[Kind::kDecode] == 2 * 5 * 2);
  }
}

TEST_CASE("a ping-pong is one chain") {
  for (const OnArrival on_arrival : {OnArrival::kNothing, OnArrival::kMerge}) {
    const Calibration calibration = ping_pong(4, 1000, 6, on_arrival);
    casync::check(calibration.graph);
    auto counts = count(calibration.graph);
    CHECK(counts[Kind::kSend] == 6);
    CHECK(counts[Kind::kMerge] == (on_arrival == OnArrival::kMerge ? 6 : 0));
    // Every Send but the first also waits for the task on its node that ends the previous hop.
    std::map<TaskId, int> before;
    for (TaskId id = 0; id < calibration.graph.tasks(); ++id) {
      for (const TaskId next : casync::successors(calibration.graph, id)) {
        if (calibration.graph[next].kind != Kind::kSend) continue;
        ++before[next];
        CHECK(calibration.graph[id].node == calibration.graph[next].node);
      }
    }
    int chained = 0;
    for (const auto& [send, predecessors] : before) chained += predecessors == 2;
    CHECK(chained == 5);
  }
}

TEST_CASE("a ping-pong is between the nodes of its pair") {
  const Calibration calibration = ping_pong(4, 1000, 5, OnArrival::kNothing, {0, 3});
  casync::check(calibration.graph);
  std::map<std::uint32_t, int> sends;  // by sender
  for (TaskId id = 0; id < calibration.graph.tasks(); ++id) {
    const casync::Task& task = calibration.graph[id];
    if (task.kind != Kind::kSend) continue;
    ++sends[task.node];
    CHECK(calibration.graph.peer(task) == 3 - task.node);
  }
  CHECK(sends == std::map<std::uint32_t, int>{{0, 3}, {3, 2}});
}

TEST_CASE("streams cover the pairs asked for") {
  CHECK(all_pairs(4).size() == 12);
  CHECK(fan_in(4).size() == 3);
  CHECK(fan_out(4).size() == 3);
  const Calibration calibration = streams(4, fan_in(4), 100, 3);
  casync::check(calibration.graph);
  for (TaskId id = 0; id < calibration.graph.tasks(); ++id) {
    if (calibration.graph[id].kind == Kind::kSend)
      CHECK(calibration.graph.peer(calibration.graph[id]) == 0);
  }
  CHECK(count(calibration.graph)[Kind::kSend] == 9);
}

TEST_CASE("an exchange is the same coding with messages and without them") {
  const Calibration sent = exchange(3, "onebit", {100, 2000}, 4, Messages::kSent);
  const Calibration kept = exchange(3, "onebit", {100, 2000}, 4, Messages::kKept);
  for (const Calibration* calibration : {&sent, &kept}) {
    casync::check(calibration->graph);
    // Every node encodes and decodes four slices of each size. Each slice is a gradient of its own.
    auto counts = count(calibration->graph);
    CHECK(counts[Kind::kEncode] == 3 * 4 * 2);
    CHECK(counts[Kind::kDecode] == 3 * 4 * 2);
    std::map<std::pair<Kind, std::uint32_t>, std::int64_t> elements_of;
    std::set<std::uint32_t> decoded;
    const casync::TaskGraph& graph = calibration->graph;
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const casync::Task& task = graph[id];
      if (task.kind == Kind::kEncode || task.kind == Kind::kDecode)
        elements_of[{task.kind, task.node}] += task.amount;
      if (task.kind != Kind::kDecode) continue;
      CHECK((task.flags & casync::kAccumulate) != 0);
      CHECK(decoded.insert(task.gradient).second);
    }
    CHECK(elements_of.size() == 2 * 3);
    for (const auto& [of, elements] : elements_of) CHECK(elements == 4 * (100 + 2000));
  }
  CHECK(count(kept.graph)[Kind::kSend] == 0);
  CHECK(count(sent.graph)[Kind::kSend] == 3 * 4);
  for (TaskId id = 0; id < sent.graph.tasks(); ++id) {
    const casync::Task& task = sent.graph[id];
    if (task.kind != Kind::kSend) continue;
    CHECK(task.amount < 100);  // the smaller slice: one bit per element, and a header
    CHECK(sent.graph.peer(task) == (task.node + 1) % 3);
  }
}

TEST_CASE("samples are summarised by their quantiles") {
  // Sorted, 1 … 11: the median is 6; the 10th percentile has index 1, the 90th index 9.
  const costs::Sample sample = summarise(42, {11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6});
  CHECK(sample.x == 42);
  CHECK(sample.median_s == 6);
  CHECK(sample.p10_s == 2);
  CHECK(sample.p90_s == 10);
  CHECK(sample.repetitions == 11);
  // Between two samples the quantile is linear.
  CHECK(summarise(1, {3, 1}).median_s == 2);
}

}  // namespace
}  // namespace hipress::profiler
