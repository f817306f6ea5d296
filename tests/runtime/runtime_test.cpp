#include "runtime/runtime.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <mutex>

#include "runtime/unit_runtime.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/scripted.hpp"

using namespace hipress;
using namespace hipress::runtime;
using Catch::Contains;
using namespace std::chrono_literals;

namespace {

/// A codec with one byte per element that calls the test for every encode, which can delay it.
class ScriptedCodec : public kernels::Codec {
 public:
  const kernels::CodecTraits& traits() const override { return traits_; }
  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return (elements + 3) / 4 * 4;
  }
  void encode(std::span<const kernels::EncodeItem> items, void*) const override {
    for (const auto& item : items) on_encode(item);
  }
  void decode(std::span<const kernels::DecodeItem> items, void*) const override {
    for (const auto& item : items) on_decode(item);
  }

  std::function<void(const kernels::EncodeItem&)> on_encode = [](const auto&) {};
  std::function<void(const kernels::DecodeItem&)> on_decode = [](const auto&) {};

 private:
  kernels::CodecTraits traits_;
};

/// Rank 1 of a ps job of 2. It is the server of gradients with an odd index. As a worker of the
/// others, it encodes and sends its slice, and decodes the mean.
struct Worker {
  explicit Worker(const std::vector<std::int64_t>& sizes, double timeout_s = 30)
      : model(make_model(sizes)),
        plan(make_plan(model, "ps", 2, 1, codec)),
        graph(casync::expand_to_run(model, plan.plan)),
        program(graph, model, plan, 1),
        runtime(endpoint, program, make_memory(sizes), states,
                {.seed = 1, .timeout_s = timeout_s}) {}

  std::vector<std::span<float>> make_memory(const std::vector<std::int64_t>& sizes) {
    std::vector<std::span<float>> spans;
    for (const std::int64_t elements : sizes) {
      spans.emplace_back(memory.emplace_back(static_cast<std::size_t>(elements)));
    }
    return spans;
  }
  /// Delivers every message that this rank awaits.
  void deliver_all() {
    for (const std::uint32_t index : program.receives()) {
      const LocalTask& local = program.tasks()[index];
      endpoint.exchange->events.arrived(local.id, local.task.amount, Clock::now());
    }
  }

  std::shared_ptr<ScriptedCodec> codec = std::make_shared<ScriptedCodec>();
  std::vector<std::vector<float>> memory;
  models::Model model;
  plans::ResolvedPlan plan;
  casync::TaskGraph graph;
  ScriptedEndpoint endpoint{1, 2};
  Program program;
  kernels::StateStore states;
  Runtime runtime;
};

}  // namespace

TEST_CASE("waiting tasks are served by ready time, then gradient") {
  // Rank 1 encodes gradients 0, 2 and 4 as a worker (and 1 and 3 as a server, after their messages
  // have arrived). While the codec is busy with gradient 2, gradients 0 and 4 become ready. If
  // gradient 4 is ready earlier, it is encoded before gradient 0. If both are ready at the same
  // instant, gradient 0 is encoded first.
  for (const bool same_instant : {false, true}) {
    Worker worker({8, 8, 8, 8, 8});
    std::mutex mutex;
    std::vector<std::uint32_t> encoded;
    std::promise<void> busy, go_on;
    worker.codec->on_encode = [&](const kernels::EncodeItem& item) {
      if (item.key.role != 0) return;  // only encodes as a worker
      if (item.key.gradient == 2) {
        busy.set_value();
        go_on.get_future().wait();
      }
      const std::lock_guard lock(mutex);
      encoded.push_back(item.key.gradient);
    };
    const Clock::time_point t = Clock::now();
    worker.runtime.begin(0);
    worker.runtime.start(t);
    worker.runtime.gradient_ready(2, t);
    busy.get_future().wait();
    worker.runtime.gradient_ready(4, t + 1us);
    worker.runtime.gradient_ready(0, same_instant ? t + 1us : t + 2us);
    worker.runtime.gradient_ready(1, t + 3us);
    worker.runtime.gradient_ready(3, t + 3us);
    go_on.set_value();
    worker.deliver_all();
    worker.runtime.wait();
    CHECK(encoded == (same_instant ? std::vector<std::uint32_t>{2, 0, 4}
                                   : std::vector<std::uint32_t>{2, 4, 0}));
  }
}

TEST_CASE("a transfer that is held up blocks no codec") {
  Worker worker({8, 8, 8});
  std::promise<void> both_encoded, go_on;
  std::atomic<int> encoded{0};
  worker.codec->on_encode = [&](const kernels::EncodeItem& item) {
    if (item.key.role == 0 && ++encoded == 2) both_encoded.set_value();
  };
  std::atomic<int> sent{0};
  worker.endpoint.exchange->on_send = [&](std::uint32_t) {
    if (sent++ == 0) go_on.get_future().wait();
  };
  worker.runtime.begin(0);
  worker.runtime.start(Clock::now());
  for (std::uint32_t g = 0; g < 3; ++g) worker.runtime.gradient_ready(g, Clock::now());
  // The first send does not return; gradient 2 must be encoded nevertheless.
  REQUIRE(both_encoded.get_future().wait_for(10s) == std::future_status::ready);
  go_on.set_value();
  worker.deliver_all();
  worker.runtime.wait();
  CHECK(sent == 3);  // two slices and one mean
}

TEST_CASE("a message that comes before the iteration starts here is taken") {
  Worker worker({8});
  worker.runtime.begin(0);
  worker.deliver_all();
  worker.runtime.start(Clock::now());
  worker.runtime.gradient_ready(0, Clock::now());
  worker.runtime.wait();
  // 8 elements take a byte each; rank 0 is the server of g0.
  CHECK(worker.runtime.bytes_sent() == 8);
}

TEST_CASE("iterations follow each other on one runtime") {
  Worker worker({8, 8});
  std::vector<std::uint64_t> steps;
  worker.codec->on_encode = [&](const kernels::EncodeItem& item) {
    steps.push_back(item.key.step);
  };
  for (std::uint64_t i = 5; i < 8; ++i) {
    worker.runtime.begin(i);
    worker.runtime.start(Clock::now());
    worker.runtime.gradient_ready(1, Clock::now());
    worker.runtime.gradient_ready(0, Clock::now());
    worker.deliver_all();
    worker.runtime.wait();
  }
  CHECK(steps == std::vector<std::uint64_t>{5, 5, 6, 6, 7, 7});
}

TEST_CASE("without progress the iteration ends and names who is waited for") {
  Worker worker({8}, 0.05);
  worker.runtime.begin(0);
  worker.runtime.start(Clock::now());
  worker.runtime.gradient_ready(0, Clock::now());
  try {
    worker.runtime.wait();
    FAIL("the mean never came");
  } catch (const transport::PeerError& error) {
    CHECK(error.culprit == 0);
    CHECK_THAT(error.what(), Contains("rank 0 sent nothing for 0.05 s") &&
                                 Contains("rank 1 waits for 'Recv g0[0] on node 1 from node 0'") &&
                                 Contains("rank 0 is still connected: if it is only late"));
  }
}

TEST_CASE("a rank that holds itself up names itself and the task") {
  Worker worker({8}, 0.05);
  worker.runtime.begin(0);
  worker.runtime.start(Clock::now());
  worker.deliver_all();  // the gradient never becomes ready
  try {
    worker.runtime.wait();
    FAIL("the gradient never became ready");
  } catch (const transport::PeerError& error) {
    CHECK(error.culprit == 1);
    CHECK_THAT(error.what(), Contains("'Backward g0 on node 1'"));
  }
}

TEST_CASE("a task that fails ends the iteration with its name") {
  Worker worker({8});
  worker.codec->on_decode = [](const kernels::DecodeItem&) {
    throw std::runtime_error("message damaged");
  };
  worker.runtime.begin(0);
  worker.runtime.start(Clock::now());
  worker.runtime.gradient_ready(0, Clock::now());
  worker.deliver_all();
  CHECK_THROWS_WITH(worker.runtime.wait(), "Decode g0[0] on node 1: message damaged");
}

TEST_CASE("a lost rank ends the iteration at once, with the task in words") {
  Worker worker({8});
  const std::uint32_t tag = worker.program.tasks()[worker.program.receives()[0]].id;
  worker.runtime.begin(0);
  worker.runtime.start(Clock::now());
  worker.endpoint.exchange->events.failed({0, "rank 0 closed the connection", {tag}});
  CHECK_THROWS_WITH(
      worker.runtime.wait_until(Clock::now() + 1h),
      Contains("rank 0 closed the connection") && Contains("'Recv g0[0] on node 1 from node 0'"));
  CHECK_THROWS_AS(worker.runtime.wait(), transport::PeerError);
}

TEST_CASE("a gradient without a Backward task here cannot become ready") {
  Worker worker({8});
  worker.runtime.begin(0);
  CHECK_THROWS_WITH(worker.runtime.gradient_ready(7, Clock::now()),
                    Contains("gradient 7 has no Backward task on node 1"));
}

TEST_CASE("units with a pace of their own have no task in another's batch") {
  // Node 1 encodes gradients 0 and 2, whose server is node 0, in one batch.
  Case made = make_case("ps", 2, 1, "fp16", {64, 64, 64});
  made.plan.plan.batch.threshold_bytes = 1 << 20;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const Program program(made.graph, made.model, made.plan, 1);
  std::vector<float> memory(192);
  const std::span<float> all(memory);
  kernels::StateStore states;
  ScriptedEndpoint endpoint(1, 2);
  CHECK_THROWS_WITH(UnitRuntime(endpoint, program,
                                {all.first(64), all.subspan(64, 64), all.last(64)}, states, {}),
                    Contains("is batched with a task of another unit"));
}
