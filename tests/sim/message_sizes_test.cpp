#include "sim/message_sizes.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {
namespace {

std::int64_t bound(std::int64_t elements) { return 16 + 4 * elements; }

TEST_CASE("a message is predicted as the profile's share of its bound, in multiples of 4") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.84;
  profile.codecs["fp16"] = {};
  std::vector<casync::Algorithm> algorithms;
  for (const char* name : {"lossless", "fp16", "onebit"}) {  // the profile has no row for onebit
    algorithms.push_back({.name = name, .encoded_bytes = bound});
  }
  for (int times = 0; times < 2; ++times) {  // a second call changes nothing
    predict_sizes(profile, algorithms);
    // 0.84 · 416 = 349.44 bytes, rounded up to 352.
    CHECK(algorithms[0].message_bytes(100) == 352);
    CHECK(algorithms[0].encoded_bytes(100) == 416);
    CHECK(algorithms[1].message_bytes(100) == 416);
    CHECK(algorithms[2].message_bytes(100) == 416);
  }
}

TEST_CASE("predicted messages grow with the slice, and are no longer than the bound") {
  costs::Profile profile;
  profile.codecs["lossless"].message_share = 0.333;
  std::vector<casync::Algorithm> algorithms = {{.name = "lossless", .encoded_bytes = bound}};
  predict_sizes(profile, algorithms);
  for (std::int64_t elements = 1; elements < 3000; ++elements) {
    CHECK(algorithms[0].message_bytes(elements) >= algorithms[0].message_bytes(elements - 1));
    CHECK(algorithms[0].message_bytes(elements) <= bound(elements));
  }
}

TEST_CASE("a scenario's graph has messages of predicted sizes") {
  Scenario scenario;
  scenario.model.gradients = {{.name = "a", .elements = 1000}};
  scenario.plan = {.topology = "ring",
                   .nodes = 2,
                   .algorithms = {{.name = "lossless", .encoded_bytes = bound}},
                   .decisions = {{0, 1}}};
  scenario.profile.codecs["lossless"].message_share = 0.5;
  const casync::TaskGraph graph = expand(scenario);
  int sends = 0;
  for (casync::TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != casync::Kind::kSend) continue;
    ++sends;
    CHECK(graph[id].amount == 2008);
  }
  CHECK(sends > 0);
}

}  // namespace
}  // namespace hipress::sim
