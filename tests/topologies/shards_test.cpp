// Tests of the two halves of a mean, reduce-scatter and gather, which are rows of the table of
// topologies.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"
#include "casync/topology.hpp"

using namespace hipress::casync;
using Catch::Contains;

namespace {

constexpr std::uint32_t kNodes = 5;
constexpr std::int64_t kElements = 32 * kNodes * 7;

/// Number of tasks that topology `row` adds for a unit with K = N, by kind, node and peer offset.
std::map<std::string, int> tasks_of(const Topology& row, const Algorithm* algorithm,
                                    std::uint32_t within = 1) {
  GraphBuilder builder(kNodes);
  std::vector<TaskId> ready;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    ready.push_back(builder.add({.node = node, .kind = Kind::kBackward}));
  }
  row.expand(builder, {.unit = 0,
                       .elements = kElements,
                       .partitions = kNodes,
                       .algorithm_index = algorithm != nullptr ? std::int8_t{0} : kRaw,
                       .algorithm = algorithm,
                       .within = within,
                       .ready = ready});
  std::map<std::string, int> tasks;
  for (TaskId id = kNodes; id < builder.size(); ++id) {
    const Task& task = builder.task(id);
    ++tasks[std::string(to_string(task.kind)) + " on " + std::to_string(task.node) + " to " +
            std::to_string(task.peer_offset)];
  }
  return tasks;
}

std::map<std::string, int> sum(std::map<std::string, int> a, const std::map<std::string, int>& b) {
  for (const auto& [name, count] : b) a[name] += count;
  return a;
}

}  // namespace

TEST_CASE("the tasks of a mean are those of a reduce-scatter and of a gather") {
  const Algorithm half = {.name = "half", .encoded_bytes = [](std::int64_t n) { return 2 * n; }};
  for (const Algorithm* const algorithm : {static_cast<const Algorithm*>(nullptr), &half}) {
    for (const auto& [mean, halves] : {std::pair("ring", "ring"), std::pair("ps", "direct")}) {
      CAPTURE(mean, algorithm != nullptr);
      CHECK(tasks_of(find_topology(mean), algorithm) ==
            sum(tasks_of(find_topology(halves, Operation::kReduceScatter), algorithm),
                tasks_of(find_topology(halves, Operation::kGather), algorithm)));
    }
  }
}

TEST_CASE("rows of shards are found by what carries them, and are no topologies") {
  CHECK(find_topology("direct", Operation::kGather).name == "direct_gather");
  CHECK(find_topology("two_level", Operation::kReduceScatter).operation ==
        Operation::kReduceScatter);
  CHECK_THROWS_WITH(find_topology("two_level", Operation::kGather),
                    Contains("shards travel by library, ring, direct, not by 'two_level'"));
  CHECK_THROWS_WITH(find_topology("ring_gather"), Contains("unknown topology 'ring_gather'"));
}
