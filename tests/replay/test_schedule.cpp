// Schedules of several steps: every rank computes a period by a timer, and ends with the right
// values.

#include <catch2/catch.hpp>
#include <limits>

#include "replay/replay.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"
#include "traces/timeline.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

/// Six layers, the last ready first, in steps of 3 ms.
Case scheduled(const std::string& schedule, const std::string& strategy, const std::string& form,
               std::uint32_t nodes) {
  Case made{.model = make_model({33, 1, 2000, 64, 500, 31}), .plan = {}, .graph = {}};
  made.model.forward_s = 1e-3;
  for (std::size_t g = 0; g < 6; ++g) {
    made.model.gradients[g].name = "blocks." + std::to_string(5 - g) + ".weight";
    made.model.gradients[g].ready_s = 2e-3 * static_cast<double>(g + 1) / 6;
  }
  made.plan =
      make_plan(made.model, strategy, nodes, static_cast<std::int32_t>(nodes), codec_or_raw(form));
  made.plan.plan.schedule = casync::Schedule::parse(schedule);
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  casync::check(made.graph);
  return made;
}

ReplayResult run(const Case& made, const std::string& transport = "memory") {
  const ReplayOptions options{.warmup = 1, .iterations = 2, .progress = {}, .timeline = true};
  return replay_threads(transport, made.model, made.plan, made.graph, options);
}

}  // namespace

TEST_CASE("periods verify, whatever the schedule, codec and topology") {
  for (const char* schedule :
       {"local(steps=3)", "local(steps=6, fragments=3)", "local(steps=6, fragments=3, overlap=1)",
        "local(steps=6, fragments=6, pattern=sequential, overlap=4)"}) {
    for (const char* strategy : {"ps", "ring"}) {
      for (const char* form : {"raw", "onebit", "int4block"}) {
        INFO(schedule << " " << strategy << " " << form);
        CHECK(run(scheduled(schedule, strategy, form, 3)).verified);
      }
    }
    CHECK(run(scheduled(schedule, "allreduce", "raw", 2), "tcp").verified);
  }
}

TEST_CASE("a period computes all its steps, and means come before the forward that awaits them") {
  const Case made = scheduled("local(steps=6, fragments=3, overlap=1)", "ring", "raw", 2);
  const ReplayResult result = run(made);
  REQUIRE(result.verified);
  const double steps_s = 6 * 3e-3;
  for (const double iteration_s : result.iteration_s) CHECK(iteration_s >= steps_s);
  const traces::Timeline& times = result.timeline;
  casync::Picoseconds computed{};
  for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
    const casync::Task& task = made.graph[id];
    if (task.node == 0 && is_computation(task)) computed += times.end[id] - times.start[id];
    for (const casync::TaskId next : successors(made.graph, id)) {
      if (!is_computation(made.graph[next]) || task.node != made.graph[next].node) continue;
      CHECK(times.start[next] >= times.start[id]);
    }
  }
  CHECK(casync::to_seconds(computed) >= steps_s);
}

TEST_CASE("the bits of a period are those of one step's synchronisation") {
  // Each fragment is averaged once, as in a step of ddp.
  const Case ddp = scheduled("ddp", "ring", "onebit", 3);
  const Case local = scheduled("local(steps=6, fragments=3, overlap=1)", "ring", "onebit", 3);
  CHECK(run(ddp).bytes_sent == run(local).bytes_sent);
}
