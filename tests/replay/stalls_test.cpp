// Tests the culprit of a stall. Every rank must name the rank that holds up all others, although it
// is alive, and although most ranks wait for a rank that is itself waiting.

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "replay/replay.hpp"
#include "runtime/device_runtime.hpp"
#include "runtime/runtime.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using casync::Kind;
using Catch::Matchers::Contains;

namespace {

/// Functions that a codec calls before its work.
struct Hooks {
  std::function<void()> before_encode = [] {};
  std::function<void()> before_decode = [] {};
};

/// fp16 with hooks.
class HookedCodec : public kernels::Codec {
 public:
  explicit HookedCodec(Hooks hooks) : hooks_(std::move(hooks)) {}
  const kernels::CodecTraits& traits() const override { return right_->traits(); }
  std::int64_t encoded_bytes(std::int64_t elements) const override {
    return right_->encoded_bytes(elements);
  }
  void encode(std::span<const kernels::EncodeItem> items, void* stream) const override {
    hooks_.before_encode();
    right_->encode(items, stream);
  }
  void decode(std::span<const kernels::DecodeItem> items, void* stream) const override {
    hooks_.before_decode();
    right_->decode(items, stream);
  }

 private:
  std::unique_ptr<kernels::Codec> right_ = kernels::make_codec("fp16");
  Hooks hooks_;
};

/// Event that threads wait for. Once it has come, all waits return at once.
class Moment {
 public:
  void comes() {
    come_ = true;
    come_.notify_all();
  }
  void wait() const { come_.wait(false); }

 private:
  std::atomic<bool> come_ = false;
};

/// Case with three ranks and one gradient, whose server is rank 0. It adds up its own slice, rank
/// 2's and rank 1's, while the workers wait for the mean.
Case make() {
  Case made = make_case("ps", 3, 1, "fp16", {64});
  made.plan.plan.algorithms.front().name = "fp16";  // devices look this up
  return made;
}

enum class Where : std::uint8_t { kEncode, kBackward };
enum class Hardware : std::uint8_t { kHost, kDevice };

struct Scene {
  std::string transport;
  Where where;  ///< place where rank 1 is stuck until the others have ended
  Hardware hardware;
  int impatient;  ///< rank whose timeout passes first
};

/// Timeouts of patient ranks, not reached even on a busy machine, and of the impatient one.
constexpr double kPatient_s = 600, kImpatient_s = 0.5;

class StuckJob {
 public:
  explicit StuckJob(const Scene& scene) : scene_(scene) {}

  std::vector<std::exception_ptr> run() {
    return run_ranks(
        3, [this](transport::Endpoint& endpoint) { run_rank(endpoint); }, scene_.transport,
        kPatient_s);
  }

 private:
  void run_rank(transport::Endpoint& endpoint) {
    try {
      iterate(endpoint);
    } catch (...) {
      if (endpoint.rank() != 1 && --others_ == 0) others_ended_.comes();
      throw;
    }
  }

  void iterate(transport::Endpoint& endpoint) {
    const int rank = endpoint.rank();
    Case made = make();
    made.plan.codecs.front() = std::make_shared<HookedCodec>(hooks_of(rank));
    const Program program(made.graph, made.model, made.plan, static_cast<std::uint32_t>(rank));
    std::vector<float> values(64, 1.0f);
    kernels::StateStore states;
    std::unique_ptr<Device> device;
    const auto runtime = make_runtime(endpoint, program, values, states, device);
    runtime->begin(0);
    endpoint.all_gather("all have begun");
    runtime->start(Clock::now());
    if (rank != 1 || scene_.where != Where::kBackward) runtime->gradient_ready(0, Clock::now());
    // wait() starts the timeout. The impatient rank calls it only when it cannot go on any more.
    if (rank == 0 && scene_.impatient == 0) slice_of_two_.wait();
    if (rank == 1 && scene_.impatient == 1 && scene_.where == Where::kEncode) stuck_.wait();
    runtime->wait();
  }

  Hooks hooks_of(int rank) {
    Hooks hooks;
    if (rank == 0) hooks.before_decode = [this] { slice_of_two_.comes(); };
    if (rank == 1 && scene_.where == Where::kEncode) {
      hooks.before_encode = [this] {
        stuck_.comes();
        others_ended_.wait();
      };
    }
    return hooks;
  }

  std::unique_ptr<RankRuntime> make_runtime(transport::Endpoint& endpoint, const Program& program,
                                            std::vector<float>& values, kernels::StateStore& states,
                                            std::unique_ptr<Device>& device) {
    const double timeout_s = endpoint.rank() == scene_.impatient ? kImpatient_s : kPatient_s;
    const std::vector<std::span<float>> units{values};
    if (scene_.hardware == Hardware::kHost) {
      return std::make_unique<Runtime>(endpoint, program, units, states,
                                       RuntimeOptions{.timeout_s = timeout_s});
    }
    const Hooks hooks = hooks_of(endpoint.rank());
    device = std::make_unique<FakeDevice>(FakeDeviceOptions{.before_encode = hooks.before_encode,
                                                            .before_decode = hooks.before_decode});
    return std::make_unique<DeviceRuntime>(endpoint, program, units, *device,
                                           DeviceRuntimeOptions{.timeout_s = timeout_s});
  }

  const Scene scene_;
  std::atomic<int> others_ = 2;
  Moment others_ended_, slice_of_two_, stuck_;
};

/// Diagnoses a stall on one rank of a graph.
class Asked {
 public:
  Asked(const Case& made, std::uint32_t rank) : program_(made.graph, made.model, made.plan, rank) {}

  /// Local index of the task with this kind, gradient and, if given, peer.
  std::uint32_t find(Kind kind, std::uint32_t gradient, std::optional<std::uint32_t> peer = {}) {
    const auto tasks = program_.tasks();
    for (std::uint32_t index = 0; index < tasks.size(); ++index) {
      const casync::Task& task = tasks[index].task;
      if (task.kind != kind || task.gradient != gradient) continue;
      if (!peer || program_.graph().peer(task) == *peer) return index;
    }
    FAIL("no such task");
    return kNoIndex;
  }
  Stall stall(const std::set<std::uint32_t>& undone, std::uint32_t busy = kNoIndex) const {
    return find_stall(
        program_, kTimeout_s, [&](std::uint32_t index) { return undone.contains(index); }, busy);
  }
  static constexpr double kTimeout_s = 10;

 private:
  Program program_;
};

void require_stall(const Stall& stall, int culprit, Blame blame, int rank,
                   const std::string& text) {
  CHECK(stall.error.culprit == culprit);
  CHECK(stall.patience == patience(Asked::kTimeout_s, blame, rank));
  CHECK_THAT(stall.error.what(), Contains(text));
}

}  // namespace

TEST_CASE("a rank that is alive but stuck is named on every rank, whoever says so", "[slow]") {
  const std::string transport = GENERATE(as<std::string>(), "memory", "gloo", "tcp");
  const Where where = GENERATE(Where::kEncode, Where::kBackward);
  const Hardware hardware = GENERATE(Hardware::kHost, Hardware::kDevice);
  const int impatient = GENERATE(0, 1);  // the server, which waits for rank 1, or rank 1 itself
  CAPTURE(transport, where == Where::kEncode, hardware == Hardware::kDevice, impatient);
  const auto errors =
      StuckJob(
          {.transport = transport, .where = where, .hardware = hardware, .impatient = impatient})
          .run();
  const std::string task = where == Where::kEncode ? "'Encode g0[0] on node 1'" : "'Backward g0 on";
  for (const std::exception_ptr& error : errors) {
    INFO(message_of(error));
    CHECK(culprit_of(error) == 1);
    CHECK_THAT(message_of(error),
               Contains(impatient == 1 ? "rank 1 made no progress for 0.5 s at " + task
                                       : "rank 1 sent nothing for 0.5 s; rank 0 waits for 'Recv "
                                         "g0[0] on node 0 from node 1'"));
  }
}

TEST_CASE(
    "a rank blames itself before others, and whose message waits for nobody's before others") {
  const Case made = make_case("ps", 3, 1, "fp16", {64, 64});  // the servers are ranks 0 and 1
  Asked zero(made, 0), one(made, 1), two(made, 2);

  // A server blames the sender of a missing slice. A worker that lacks the mean blames the server,
  // but is unsure, as the server may wait for any slice.
  require_stall(zero.stall({zero.find(Kind::kRecv, 0, 1)}), 1, Blame::kSender, 0,
                "waits for 'Recv");
  require_stall(two.stall({two.find(Kind::kRecv, 0, 0)}), 0, Blame::kUnsure, 2, "waits for 'Recv");
  // If both are missing, the slice's sender is blamed, although the mean is first in the graph.
  require_stall(one.stall({one.find(Kind::kRecv, 0, 0), one.find(Kind::kRecv, 1, 2)}), 2,
                Blame::kSender, 1, "'Recv g1[0] on node 1 from node 2'");
  // A rank that is stuck blames itself, even if it also lacks messages.
  const std::uint32_t mean = two.find(Kind::kRecv, 0, 0);
  require_stall(two.stall({two.find(Kind::kBackward, 1), mean}), 2, Blame::kSelf, 2,
                "'Backward g1");
  require_stall(two.stall({mean}, two.find(Kind::kEncode, 0)), 2, Blame::kSelf, 2, "'Encode g0[0]");
}

TEST_CASE("who knows better who is at fault says so sooner") {
  CHECK(patience(10, Blame::kSelf, 63) == std::chrono::seconds(10));
  CHECK(patience(10, Blame::kSelf, 63) < patience(10, Blame::kSender, 0));
  CHECK(patience(10, Blame::kSender, 0) < patience(10, Blame::kSender, 1));
  CHECK(patience(10, Blame::kSender, 63) < patience(10, Blame::kUnsure, 0));
  CHECK(patience(10, Blame::kUnsure, 63) <= std::chrono::seconds(14));
}

TEST_CASE("what went wrong on one rank is what all others are told") {
  const Case made = make();
  const auto errors = run_ranks(3, [&](transport::Endpoint& endpoint) {
    plans::ResolvedPlan plan = made.plan;
    if (endpoint.rank() == 1) {
      plan.codecs.front() = std::make_shared<HookedCodec>(
          Hooks{.before_encode = [] { throw std::runtime_error("out of ink"); }});
    }
    replay::replay(endpoint, made.model, plan, made.graph,
                   {.warmup = 0, .iterations = 1, .progress = {}});
  });
  CHECK(message_of(errors[1]) == "Encode g0[0] on node 1: out of ink");
  for (const int rank : {0, 2}) {
    const std::exception_ptr& error = errors[static_cast<std::size_t>(rank)];
    CHECK(culprit_of(error) == 1);
    CHECK_THAT(message_of(error), Contains("rank 1: Encode g0[0] on node 1: out of ink"));
  }
}
