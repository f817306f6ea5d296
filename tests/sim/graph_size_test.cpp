#include "sim/graph_size.hpp"

#include <catch2/catch.hpp>

#include "sim/folding.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/fixtures.hpp"

namespace hipress::sim {
namespace {

using casync::Folding;
using casync::kRaw;
using Catch::Matchers::Contains;
using tests::complaint;

TEST_CASE("the size of a graph is known before it is made") {
  Scenario scenario = test_scenario(test_model({32 * 4 * 8, 32 * 4 * 3, 32 * 4}), "ring", 4, 0, 4);
  CHECK(graph_size(scenario, Folding::kNone).tasks == expand(scenario).tasks());
  CHECK(graph_size(scenario, Folding::kFolded).tasks == expand(scenario, Folding::kFolded).tasks());
  scenario.iterations = 3;
  CHECK(graph_size(scenario, Folding::kNone).tasks >= expand(scenario).tasks());
  CHECK(graph_size(scenario, Folding::kNone).tasks <= 1.2 * expand(scenario).tasks());
  for (const char* topology : {"ps", "ring"}) {
    scenario.plan.topology = topology;
    scenario.plan.pipelining = false;
    CHECK(graph_size(scenario, Folding::kNone).tasks >= expand(scenario).tasks());
  }
}

TEST_CASE("what is made beside a graph counts") {
  const Scenario scenario = test_scenario(test_model({32000}), "ring", 4, 0, 4);
  const double alone = graph_size(scenario, Folding::kNone).bytes;
  const double with_replicas = graph_size(scenario, Folding::kNone, {.replicas = 8}).bytes;
  CHECK(with_replicas > alone);
  CHECK(graph_size(scenario, Folding::kNone, {.changed_graph = true}).bytes > alone);
}

TEST_CASE("a graph for which there is no room is refused with a remedy") {
  CHECK_NOTHROW(require_room({1e8, 17e9}, 20'000'000'000, ""));
  CHECK_THAT(complaint([] {
               require_room({1e8, 17e9}, 16'000'000'000, "give less");
             }),
             Contains("about 1e+08 tasks, which need about 17GB") &&
                 Contains("16GB are available; give less"));
  // Ids have 32 bits, no matter how much memory there is.
  CHECK_THAT(complaint([] {
               require_room({4e9, 1}, INT64_MAX, "give less");
             }),
             Contains("about 4e+09 tasks, more than") && Contains("give less"));
}

TEST_CASE("BERT-large on 1024 nodes has room in 1 GB, folded, and not in 64 GB otherwise") {
  Scenario scenario = test_scenario(models::read_model("bert_large"), "ring", 1024, kRaw, 1024);
  scenario.plan.bulk.threshold_bytes = 4 << 20;
  CHECK_NOTHROW(require_room(graph_size(scenario, Folding::kFolded), 1'000'000'000, ""));
  CHECK_THAT(
      complaint([&] { require_room(graph_size(scenario, Folding::kNone), 64'000'000'000, ""); }),
      Contains("are available"));
}

}  // namespace
}  // namespace hipress::sim
