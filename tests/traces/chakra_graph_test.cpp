// Tests that graphs survive their export as Chakra traces: the same tasks and the same picoseconds.

#include "traces/chakra_graph.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "io/error.hpp"
#include "sim/simulator.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/planner/tool_run.hpp"
#include "tests/sim/random_scenario.hpp"
#include "traces/make_model.hpp"
#include "traces/trace_reader.hpp"

namespace hipress::traces {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;
using planner::ToolRun;
using planner::Workplace;
using sim::RandomScenario;

ChakraGraph exported(const RandomScenario& scenario, const sim::Result& result) {
  ChakraGraph what;
  what.graph = scenario.graph();
  std::uint32_t gradients = 0;
  for (casync::TaskId id = 0; id < what.graph.tasks(); ++id) {
    gradients = std::max(gradients, what.graph[id].gradient + 1);
  }
  for (std::uint32_t g = 0; g < gradients; ++g) what.names.push_back("g" + std::to_string(g));
  what.algorithms = {sim::byte_codec().name};
  what.model = "random";
  what.iteration = result.iteration;
  what.timeline = result.timeline;
  return what;
}

bool same_tasks(const casync::TaskGraph& a, const casync::TaskGraph& b) {
  if (a.tasks() != b.tasks() || a.predecessors != b.predecessors) return false;
  for (casync::TaskId id = 0; id < a.tasks(); ++id) {
    std::vector<casync::TaskId> of_a(casync::successors(a, id).begin(),
                                     casync::successors(a, id).end());
    std::vector<casync::TaskId> of_b(casync::successors(b, id).begin(),
                                     casync::successors(b, id).end());
    std::ranges::sort(of_a);
    std::ranges::sort(of_b);
    const casync::Task &one = a[id], &other = b[id];
    const auto key = [](const casync::Task& task) {
      return std::tuple(task.amount, task.gradient, task.partition, task.node, task.peer_offset,
                        task.kind, task.algorithm, task.role, task.flags, task.stage);
    };
    if (of_a != of_b || key(one) != key(other)) return false;
  }
  return true;
}

TEST_CASE("a graph that is read back has the same tasks and simulates to the same picoseconds") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const tests::TemporaryFolder folder;
    const RandomScenario scenario(seed, RandomScenario::Hierarchy::kSome);
    sim::Options options = scenario.options();
    options.jitter = nullptr;
    const auto simulated = [&](const casync::TaskGraph& graph) {
      return sim::simulate(graph, scenario.costs(), scenario.cluster(), options);
    };
    const sim::Result result = simulated(scenario.graph());
    write_chakra_graph(folder.path("graph"), exported(scenario, result));
    const ChakraGraph read = read_chakra_graph(folder.path("graph"));
    REQUIRE(same_tasks(read.graph, scenario.graph()));
    CHECK(read.iteration == result.iteration);
    CHECK(read.timeline.start == result.timeline.start);
    const sim::Result again = simulated(read.graph);
    CHECK(again.iteration == result.iteration);
    CHECK(again.timeline.start == result.timeline.start);
    CHECK(again.timeline.end == result.timeline.end);
  }
}

TEST_CASE("hipress-sim exports one trace a rank, and simulates them as before", "[tool]") {
  const Workplace place;
  const std::string how = GENERATE(
      as<std::string>{}, "--plan all --topology ps --nnodes 4",
      "--plan none --topology allreduce --nnodes 3",
      "--plan all --topology ring --nnodes 4 --network port --bulk-threshold 1MiB",
      "--plan all --algorithm 'powersgd(rank=4)' --topology allreduce --nnodes 4 --profile "
      "a100-25g",
      "--plan fp16 --topology ring --nnodes 2 --gpus-per-node 2 --gpu-bandwidth 50GB/s "
      "--transfer-order need");
  CAPTURE(how);
  const ToolRun first =
      place.run("hipress-sim --input lstm " + how + " --export-chakra graph --json");
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const json before = json::parse(first.out);
  // The command line gives the machines; the files have the rest.
  std::string machines;
  for (const char* option : {"--profile a100-25g", "--gpus-per-node 2 --gpu-bandwidth 50GB/s"}) {
    if (how.find(option) != std::string::npos) machines += std::string(" ") + option;
  }
  const ToolRun second = place.run("hipress-sim --chakra graph --json" + machines);
  CAPTURE(second.err);
  REQUIRE(second.status == 0);
  const json after = json::parse(second.out);
  CHECK(after["iteration_ps"] == after["exported_iteration_ps"]);
  CHECK(after["every_task_as_exported"] == true);
  CHECK(after["iteration_s"] == before["iteration_s"]);
  CHECK(after["tasks"] == before["tasks"]);
  CHECK(after["bytes_sent_per_node"] == before["bytes_sent_per_node"]);
}

TEST_CASE("other machines give other times", "[tool]") {
  const Workplace place;
  REQUIRE(
      place.run("hipress-sim --input lstm --plan all --nnodes 3 --export-chakra graph").status ==
      0);
  const ToolRun run = place.run("hipress-sim --chakra graph --bandwidth 1Gbps --json");
  REQUIRE(run.status == 0);
  const json report = json::parse(run.out);
  CHECK(report["iteration_ps"].get<std::int64_t>() >
        report["exported_iteration_ps"].get<std::int64_t>());
  CHECK(report["every_task_as_exported"] == false);
}

TEST_CASE("the documented example simulates what was exported", "[tool]") {
  const Workplace place;
  REQUIRE(
      place.run("hipress-sim --input lstm --plan all --nnodes 3 --export-chakra graph").status ==
      0);
  const ToolRun run = place.run(planner::documented_example(place, "hipress-sim --chakra graph"));
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.out, Contains("every task starts and ends as exported"));
}

TEST_CASE("exports that are damaged, incomplete or mixed are refused", "[tool]") {
  const Workplace place;
  const auto make = [&](const std::string& folder, const std::string& plan) {
    REQUIRE(place
                .run("hipress-sim --input lstm --plan " + plan +
                     " --nnodes 3 --topology ps --export-chakra " + folder)
                .status == 0);
  };
  make("graph", "all");
  make("other", "none");
  const auto refused = [&](const std::string& why) {
    const ToolRun run = place.run("hipress-sim --chakra graph");
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Contains("hipress.") && Contains(why));
  };
  SECTION("cut off") {
    const std::string whole = place.read("graph/hipress.1.et");
    place.write("graph/hipress.1.et", whole.substr(0, whole.size() - 5));
    refused("is cut short");
  }
  SECTION("missing") {
    std::filesystem::remove(place.path() / "graph/hipress.2.et");
    refused("No such file");
  }
  SECTION("mixed") {
    place.write("graph/hipress.1.et", place.read("other/hipress.1.et"));
    refused("belongs to another export");
  }
  SECTION("another rank's") {
    place.write("graph/hipress.1.et", place.read("graph/hipress.2.et"));
    refused("another rank's file");
  }
  SECTION("without its last task") {
    // A length of one or two bytes precedes each message. The last message begins where all lengths
    // before it end.
    const std::string whole = place.read("graph/hipress.2.et");
    std::size_t at = 0, last = 0;
    while (at < whole.size()) {
      last = at;
      std::size_t length = 0;
      int shift = 0;
      while (true) {
        const auto byte = static_cast<unsigned char>(whole[at++]);
        length |= std::size_t{byte & 0x7fu} << shift;
        shift += 7;
        if (byte < 0x80) break;
      }
      at += length;
    }
    place.write("graph/hipress.2.et", whole.substr(0, last));
    refused("tasks, but");
  }
  SECTION("somebody else's") {
    place.write("graph/hipress.0.et", std::string("\x07\x0a\x05") + "0.0.4");
    refused("is no graph of this release's hipress-sim");
  }
}

TEST_CASE("an export has one iteration of whole nodes at nominal times", "[tool]") {
  const Workplace place;
  for (const char* option : {"--jitter uniform:0.1", "--steady", "--fold always"}) {
    const ToolRun run = place.run(
        std::string("hipress-sim --input lstm --plan all --nnodes 4 --export-chakra graph ") +
        option);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, Contains("--export-chakra"));
    CHECK_FALSE(place.has("graph"));
  }
}

TEST_CASE("an export of ours is no trace of a training job", "[tool]") {
  const Workplace place;
  REQUIRE(
      place.run("hipress-sim --input lstm --plan all --nnodes 2 --export-chakra graph").status ==
      0);
  CHECK_THROWS_WITH(read_trace((place.path() / "graph/hipress.0.et").string()),
                    Contains("hipress-sim `chakra`"));
}

}  // namespace
}  // namespace hipress::traces
