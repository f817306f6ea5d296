// Tests schedules whose computation waits for communication: local updates over several steps, and
// shards. Every rank computes by a timer, and must end with the right values.

#include <catch2/catch.hpp>
#include <limits>

#include "replay/replay.hpp"
#include "replay/verify.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"
#include "traces/timeline.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

/// Case with six layers in steps of 3 ms: 1 ms forward, 2 ms backward, from the last layer on.
Case scheduled(const std::string& schedule, const std::string& topology, const std::string& form,
               std::uint32_t nodes) {
  Case made{.model = make_model({33, 1, 2000, 64, 500, 31}), .plan = {}, .graph = {}};
  made.model.forward_s = 1e-3;
  for (std::size_t g = 0; g < 6; ++g) {
    made.model.gradients[g].name = "blocks." + std::to_string(5 - g) + ".weight";
    made.model.gradients[g].ready_s = 2e-3 * static_cast<double>(g + 1) / 6;
  }
  made.plan =
      make_plan(made.model, topology, nodes, static_cast<std::int32_t>(nodes), codec_or_raw(form));
  if (form != "raw") made.plan.plan.algorithms.front().name = form;  // devices look this up
  made.plan.plan.schedule = casync::Schedule::parse(schedule);
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  casync::check(made.graph);
  return made;
}

/// Case with the same six gradients in three layers, whose shards are messages.
Case sharded(const std::string& schedule, const std::string& shards_by, const std::string& gathered,
             const std::string& reduced, std::uint32_t nodes, std::uint32_t within = 1) {
  Case made = scheduled("ddp", "ps", reduced, nodes);
  for (std::size_t g = 0; g < 6; ++g) {
    made.model.gradients[g].layer = "blocks." + std::to_string(2 - g / 2);
  }
  casync::Plan& plan = made.plan.plan;
  plan.schedule = casync::Schedule::parse(schedule);
  plan.shards_by = shards_by;
  plan.exchange_within = within;
  if (gathered != "raw") {
    plans::ResolvedPlan other = make_plan(made.model, "ps", nodes, 1, codec_or_raw(gathered));
    plan.gathers.assign(6, static_cast<std::int8_t>(plan.algorithms.size()));
    plan.algorithms.push_back(other.plan.algorithms.front());
    plan.algorithms.back().name = gathered;
    made.plan.codecs.push_back(other.codecs.front());
  }
  made.graph = casync::expand_to_run(made.model, plan);
  casync::check(made.graph);
  return made;
}

ReplayResult run(const Case& made, const std::string& transport = "memory") {
  const ReplayOptions options{.warmup = 1, .iterations = 2, .progress = {}, .timeline = true};
  return replay_threads(transport, made.model, made.plan, made.graph, options);
}

/// As run(), on devices, with messages over NCCL or, if `nccl` is null, through the host.
ReplayResult run_on_devices(const Case& made, transport::NcclLibrary* nccl,
                            const FakeDeviceOptions& device = {}) {
  ReplayOptions options{.warmup = 1, .iterations = 2, .progress = {}, .timeline = true};
  options.nccl = nccl;
  options.device = [device](int rank) {
    FakeDeviceOptions own = device;
    own.seed = own.seed * 31 + static_cast<unsigned>(rank);
    return std::make_unique<FakeDevice>(own);
  };
  return replay_threads("memory", made.model, made.plan, made.graph, options);
}

/// Runs the case on devices, through the host and over NCCL: each sends as many bytes as on CPUs.
void verify_on_devices(const Case& made) {
  static unsigned seed = 0;
  const std::vector<std::int64_t> sent = run(made).bytes_sent;
  FakeNccl nccl;
  for (transport::NcclLibrary* const library : {static_cast<FakeNccl*>(nullptr), &nccl}) {
    INFO((library == nullptr ? "pinned" : "nccl"));
    const ReplayResult result = run_on_devices(made, library, {.seed = ++seed});
    CHECK(result.verified);
    CHECK(result.bytes_sent == sent);
  }
  CHECK(nccl.aborted == 0);
}

/// Requires that computation begins after the communication on its node that it waits for.
void require_order(const Case& made, const traces::Timeline& times) {
  for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
    for (const casync::TaskId next : successors(made.graph, id)) {
      const bool here = made.graph[id].node == made.graph[next].node;
      if (!here || !is_computation(made.graph[next]) || is_computation(made.graph[id])) continue;
      CHECK(times.start[next] >= times.end[id]);
    }
  }
}

}  // namespace

TEST_CASE("periods verify, whatever the schedule, codec and topology") {
  for (const char* schedule :
       {"local(steps=3)", "local(steps=6, fragments=3)", "local(steps=6, fragments=3, overlap=1)",
        "local(steps=6, fragments=6, pattern=sequential, overlap=4)"}) {
    for (const char* topology : {"ps", "ring"}) {
      for (const char* form : {"raw", "onebit", "int4block"}) {
        INFO(schedule << " " << topology << " " << form);
        CHECK(run(scheduled(schedule, topology, form, 3)).verified);
      }
    }
    CHECK(run(scheduled(schedule, "allreduce", "raw", 2), "tcp").verified);
  }
}

TEST_CASE("rings over the rails of hosts verify, means and shards") {
  for (const char* form : {"raw", "onebit", "fp16"}) {
    for (const std::uint32_t rails : {2u, 3u}) {
      INFO(form << " " << rails);
      Case mean = scheduled("ddp", "ring", form, 6);
      Case shards = sharded("fsdp", "ring", "raw", form == std::string("onebit") ? "raw" : form, 6);
      for (Case* const made : {&mean, &shards}) {
        const std::size_t tasks = made->graph.tasks();
        made->plan.plan.rails = rails;
        made->graph = casync::expand_to_run(made->model, made->plan.plan);
        casync::check(made->graph);
        CHECK(made->graph.tasks() == tasks);
        CHECK(run(*made).verified);
      }
    }
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
  // In a period, each fragment is averaged once, as in a step of ddp.
  const Case ddp = scheduled("ddp", "ring", "onebit", 3);
  const Case local = scheduled("local(steps=6, fragments=3, overlap=1)", "ring", "onebit", 3);
  CHECK(run(ddp).bytes_sent == run(local).bytes_sent);
}

TEST_CASE("gathered parameters and reduced shards verify, whatever carries them") {
  for (const char* schedule : {"fsdp", "fsdp(reshard=false)", "fsdp(reshard=2)",
                               "fsdp(prefetch=none, communicators=separate, in_flight=1)"}) {
    for (const char* shards_by : {"ring", "direct"}) {
      for (const char* gathered : {"raw", "bf16", "int8block"}) {
        for (const char* reduced : {"raw", "fp16", "onebit", "int4block"}) {
          INFO(schedule << " " << shards_by << " " << gathered << " " << reduced);
          CHECK(run(sharded(schedule, shards_by, gathered, reduced, 4)).verified);
        }
      }
    }
  }
  CHECK(run(sharded("fsdp", "ring", "raw", "int4block", 6, 3)).verified);
  CHECK(run(sharded("fsdp", "direct", "int8block", "int4block", 4, 2), "tcp").verified);
  CHECK(run(sharded("fsdp", "ring", "raw", "raw", 3), "tcp").verified);
  CHECK(run(sharded("fsdp", "ring", "raw", "raw", 1)).verified);
}

TEST_CASE("a step in shards sends what ZeRO-3 does, and computes what was gathered") {
  const Case made = sharded("fsdp", "ring", "raw", "raw", 4);
  const ReplayResult result = run(made);
  std::int64_t sent = 0, elements = 0;
  for (const std::int64_t bytes : result.bytes_sent) sent += bytes;
  for (const models::Gradient& gradient : made.model.gradients) elements += gradient.elements;
  CHECK(sent == 3 * 4 * elements * 3);  // 3 times, the fp32 parameters travel to 3 other ranks
  require_order(made, result.timeline);
}

TEST_CASE("groups that have all shards each end with one mean") {
  for (const char* schedule :
       {"hsdp(shard=2)", "hsdp(shard=4, reshard=2)", "hsdp(shard=2, reshard=false, prefetch=post)",
        "hsdp(shard=4, communicators=separate)", "hsdp(shard=1)", "hsdp(shard=8)"}) {
    for (const char* shards_by : {"ring", "direct"}) {
      for (const char* reduced : {"raw", "fp16", "onebit"}) {
        INFO(schedule << " " << shards_by << " " << reduced);
        CHECK(run(sharded(schedule, shards_by, "int8block", reduced, 8)).verified);
      }
    }
  }
  CHECK(run(sharded("hsdp(shard=3)", "direct", "raw", "bf16", 6), "tcp").verified);
  CHECK(run(sharded("hsdp(shard=4)", "ring", "raw", "int4block", 8, 2)).verified);
  verify_on_devices(sharded("hsdp(shard=2)", "ring", "int8block", "int4block", 4));
  verify_on_devices(sharded("hsdp(shard=2)", "direct", "raw", "fp16", 6));
}

TEST_CASE("a step of groups sends what HSDP does") {
  // Each of N = 4 ranks sends M/2 bytes within its pair in each of two gathers and in the
  // reduction, where M is the size of the parameters. To average its shard of M/2 bytes with the
  // other pair, it sends half of it twice.
  const Case made = sharded("hsdp(shard=2)", "ring", "raw", "raw", 4);
  std::int64_t sent = 0, elements = 0;
  for (const std::int64_t bytes : run(made).bytes_sent) sent += bytes;
  for (const models::Gradient& gradient : made.model.gradients) elements += gradient.elements;
  // The sum over all ranks is exact: rounding shards to 32 elements only shifts bytes between them.
  CHECK(sent == 4 * 4 * elements * 3 / 2 + 4 * 4 * elements / 2);
}

TEST_CASE("a mean that groups do not share does not verify") {
  // Rank 2 wrongly decodes the first 32 elements of a layer in the message from the other pair.
  const Case made = sharded("hsdp(shard=2)", "direct", "raw", "fp16", 4);
  const auto errors = run_ranks(4, [&](transport::Endpoint& endpoint) {
    plans::ResolvedPlan plan = made.plan;
    if (endpoint.rank() == 2) plan.codecs.front() = std::make_shared<WrongCodec>(0, 32);
    replay::replay(endpoint, made.model, plan, made.graph, {.progress = {}});
  });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error), Contains("does not verify after iteration 0"));
  }
}

TEST_CASE("periods verify on devices", "[slow]") {
  for (const char* schedule : {"local(steps=3)", "local(steps=6, fragments=3, overlap=1)"}) {
    for (const char* topology : {"ps", "ring", "allreduce"}) {
      for (const char* form : {"raw", "int4block"}) {
        if (std::string(topology) == "allreduce" && std::string(form) != "raw") continue;
        INFO(schedule << " " << topology << " " << form);
        verify_on_devices(scheduled(schedule, topology, form, 3));
      }
    }
  }
}

TEST_CASE("shards are gathered and reduced on devices as on CPUs", "[slow]") {
  for (const char* schedule : {"fsdp", "fsdp(reshard=false)", "fsdp(reshard=2)",
                               "fsdp(prefetch=none, communicators=separate, in_flight=1)"}) {
    for (const char* shards_by : {"ring", "direct"}) {
      for (const char* gathered : {"raw", "bf16", "int8block"}) {
        for (const char* reduced : {"raw", "fp16", "onebit"}) {
          INFO(schedule << " " << shards_by << " " << gathered << " " << reduced);
          verify_on_devices(sharded(schedule, shards_by, gathered, reduced, 4));
        }
      }
    }
  }
  verify_on_devices(sharded("fsdp", "ring", "raw", "int4block", 6, 3));
  verify_on_devices(sharded("fsdp", "ring", "raw", "raw", 1));
}

TEST_CASE("a device's computation begins when what it waits for has been done there") {
  FakeNccl nccl;
  for (transport::NcclLibrary* const library : {static_cast<FakeNccl*>(nullptr), &nccl}) {
    const Case made = sharded("fsdp", "direct", "int8block", "int4block", 3);
    const ReplayResult result = run_on_devices(made, library);
    require_order(made, result.timeline);
    for (const double iteration_s : result.iteration_s) CHECK(iteration_s >= 3e-3);
  }
}

TEST_CASE("a device that is asked to wait for nothing ends a step in shards with wrong values") {
  const Case made = sharded("fsdp", "ring", "raw", "raw", 3);
  for (const bool direct : {false, true}) {
    int wrong = 0;
    for (unsigned seed = 1; seed <= 20 && wrong == 0; ++seed) {
      FakeNccl nccl;
      try {
        run_on_devices(made, direct ? &nccl : nullptr, {.seed = seed, .ignores_waits = true});
      } catch (const VerificationError&) {
        ++wrong;
      }
    }
    CHECK(wrong == 1);
  }
}

TEST_CASE("who waits for a message before it computes on blames who did not send it") {
  const Case made = sharded("fsdp", "direct", "raw", "raw", 2);
  const Program program(made.graph, made.model, made.plan, 0);
  const auto is_not_forward = [&](std::uint32_t index) {
    return program.tasks()[index].task.kind != casync::Kind::kForward;
  };
  const Stall stall = find_stall(program, 10, is_not_forward, kNoIndex);
  CHECK(stall.error.culprit == 1);
  CHECK_THAT(stall.error.what(), Contains("rank 1 sent nothing for 10 s; rank 0 waits for 'Recv"));
}

TEST_CASE("where a device's message never comes, computation waits no longer than the timeout",
          "[slow]") {
  const Case made = sharded("fsdp", "direct", "raw", "raw", 2);
  FakeNccl nccl;
  nccl.silent = 1;
  ReplayOptions options{.warmup = 0, .iterations = 1, .progress = {}};
  options.timeout_s = 1;
  options.nccl = &nccl;
  options.device = [](int) { return std::make_unique<FakeDevice>(FakeDeviceOptions{}); };
  const auto errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    replay::replay(endpoint, made.model, made.plan, made.graph, options);
  });
  for (const auto& error : errors) {
    INFO(message_of(error));
    CHECK_THAT(message_of(error), Contains("sent nothing to rank"));
  }
}

TEST_CASE("what is gathered is as its owner had it, or a replay does not verify") {
  // Rank 0 decodes one element of a layer's first shard wrongly.
  const Case made = sharded("fsdp", "direct", "fp16", "raw", 2);
  const casync::Layout layout = casync::make_layout(made.model, made.plan.plan);
  const std::int64_t shard =
      casync::slice(layout.units[layout.parameters[0].forward].elements, 2, 0).elements;
  const auto errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    plans::ResolvedPlan plan = made.plan;
    if (endpoint.rank() == 0) plan.codecs.back() = std::make_shared<WrongCodec>(0, shard);
    replay::replay(endpoint, made.model, plan, made.graph, {.progress = {}});
  });
  for (const auto& error : errors) {
    CHECK_THAT(message_of(error), Contains("does not verify after iteration 0"));
  }
}
