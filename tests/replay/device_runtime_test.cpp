// Tests the runtime for devices on a fake device, which runs its streams in any order that their
// events allow. Messages travel through the host or over a fake NCCL.

#include "runtime/device_runtime.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <future>
#include <optional>

#include "replay/device_choice.hpp"
#include "replay/inputs.hpp"
#include "replay/replay.hpp"
#include "replay/verify.hpp"
#include "tests/gpu.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"
#include "tests/runtime/scripted.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

/// Sizes around 32 and 1024 elements, and one that every number of partitions divides into slices.
const std::vector<std::int64_t> kSizes{1, 33, 1025, 20000};

Case make(const std::string& topology, std::uint32_t nodes, std::int32_t partitions,
          const std::string& form, const std::vector<std::int64_t>& sizes = kSizes) {
  Case made = make_case(topology, nodes, partitions, form, sizes);
  if (form != "raw") made.plan.plan.algorithms.front().name = form;
  return made;
}

/// Two iterations, because the second one uses the residuals of the first.
ReplayOptions on_device(const FakeDeviceOptions& device, transport::NcclLibrary* nccl) {
  ReplayOptions options;
  options.warmup = 1;
  options.iterations = 1;
  options.nccl = nccl;
  options.device = [device](int rank) {
    FakeDeviceOptions own = device;
    own.seed = own.seed * 31 + static_cast<unsigned>(rank);
    return std::make_unique<FakeDevice>(own);
  };
  return options;
}

ReplayResult replay_on(const Case& made, const FakeDeviceOptions& device,
                       transport::NcclLibrary* nccl) {
  return replay_threads("memory", made.model, made.plan, made.graph, on_device(device, nccl));
}

bool messages_vary(const Case& made) {
  return std::ranges::any_of(made.plan.codecs,
                             [](const auto& codec) { return codec->traits().varies; });
}

void verify_both_transports(const Case& made, unsigned seed) {
  const ReplayResult pinned = replay_on(made, {.seed = seed}, nullptr);
  CHECK(pinned.verified);
  FakeNccl nccl;
  const ReplayResult direct = replay_on(made, {.seed = seed}, &nccl);
  CHECK(direct.verified);
  CHECK(nccl.aborted == 0);
  // NCCL always sends the maximum length of a message.
  if (messages_vary(made)) {
    CHECK(direct.bytes_sent >= pinned.bytes_sent);
  } else {
    CHECK(direct.bytes_sent == pinned.bytes_sent);
  }
}

/// Errors of all ranks of a job that must fail.
std::vector<std::exception_ptr> failures(const Case& made, const FakeDeviceOptions& device,
                                         FakeNccl& nccl, double timeout_s) {
  ReplayOptions options = on_device(device, &nccl);
  options.timeout_s = timeout_s;
  return run_ranks(static_cast<int>(made.graph.nodes), [&](transport::Endpoint& endpoint) {
    replay::replay(endpoint, made.model, made.plan, made.graph, options);
  });
}

bool is_timed_by_device(const casync::Task& task) {
  return task.kind == casync::Kind::kEncode || task.kind == casync::Kind::kDecode ||
         task.kind == casync::Kind::kMerge || task.kind == casync::Kind::kRecv;
}

/// Sets an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("devices verify for all topologies, all codecs and ways to move messages", "[slow]") {
  unsigned seed = 0;
  std::vector<std::string> forms{"raw"};
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) continue;  // replays on devices run no staged codecs
    forms.emplace_back(row.name);
  }
  for (const std::string topology : {"ps", "ring", "allreduce", "allgather"}) {
    for (const std::string& form : forms) {
      if (topology == "allreduce" && !can_be_summed(form)) continue;
      for (const std::uint32_t nodes : {1u, 2u, 3u, 4u}) {
        const auto partitions = static_cast<std::int32_t>(1 + seed % 5);
        INFO(topology << ", N = " << nodes << ", K = " << partitions << ", " << form);
        verify_both_transports(make(topology, nodes, partitions, form), ++seed);
      }
    }
  }
}

TEST_CASE("devices send as many bytes of messages that vary as hosts do") {
  for (const std::string topology : {"ps", "ring", "allgather"}) {
    INFO(topology);
    const Case made = make(topology, 3, 2, "lossless");
    ReplayOptions options;
    options.iterations = 1;
    const ReplayResult on_host =
        replay_threads("memory", made.model, made.plan, made.graph, options);
    CHECK(on_host.bytes_sent == replay_on(made, {}, nullptr).bytes_sent);
    FakeNccl nccl;
    CHECK(on_host.bytes_sent < replay_on(made, {}, &nccl).bytes_sent);
  }
}

TEST_CASE("devices verify with bulk groups, batches, all-reduces and without pipelining",
          "[slow]") {
  const std::vector<std::int64_t> sizes{33, 1, 20000, 64, 5000, 31, 100, 3};
  unsigned seed = 0;
  for (const std::string topology : {"ps", "ring", "allgather"}) {
    for (unsigned bits = 0; bits < 16; ++bits) {
      Case made = make(topology, 3, 2, "onebit", sizes);
      casync::Plan& plan = made.plan.plan;
      for (std::size_t g = 0; g < sizes.size(); g += 3) plan.decisions[g].algorithm = casync::kRaw;
      for (std::size_t g = 0; g < sizes.size(); ++g) {
        made.model.gradients[g].ready_s = 1e-4 * static_cast<double>((g * 5) % 4);
      }
      if ((bits & 1) != 0) plan.bulk.threshold_bytes = 4096;
      if ((bits & 2) != 0) plan.batch.threshold_bytes = 1 << 20;
      if ((bits & 4) != 0) plan.raw_topology = "allreduce";
      plan.pipelining = (bits & 8) == 0;
      made.graph = casync::expand_to_run(made.model, plan);
      INFO(topology << " features " << bits);
      verify_both_transports(made, ++seed);
    }
  }
}

TEST_CASE("a device that is asked to wait for nothing ends with wrong values") {
  // This shows that the tests above detect tasks that do not wait for their predecessors.
  const Case made = make("ring", 3, 3, "raw");
  for (const bool direct : {false, true}) {
    int wrong = 0;
    for (unsigned seed = 1; seed <= 20 && wrong == 0; ++seed) {
      FakeNccl nccl;
      try {
        replay_on(made, {.seed = seed, .ignores_waits = true}, direct ? &nccl : nullptr);
      } catch (const VerificationError&) {
        ++wrong;
      }
    }
    CHECK(wrong == 1);
  }
}

TEST_CASE("a device's timeline is of its own clock, in the order of the graph") {
  for (const bool direct : {false, true}) {
    const Case made = make("ps", 2, 2, "onebit");
    FakeNccl nccl;
    ReplayOptions options = on_device({}, direct ? &nccl : nullptr);
    options.timeline = true;
    const ReplayResult result =
        replay_threads("memory", made.model, made.plan, made.graph, options);
    const traces::Timeline& timeline = result.timeline;
    for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
      CHECK(timeline.start[id] <= timeline.end[id]);
      for (const casync::TaskId next : casync::successors(made.graph, id)) {
        if (!is_timed_by_device(made.graph[id]) || !is_timed_by_device(made.graph[next])) continue;
        INFO(casync::describe(made.graph, id) << " before " << casync::describe(made.graph, next));
        CHECK(timeline.end[id] <= timeline.start[next]);
      }
    }
    CHECK(result.iteration_s.front() > 0);
  }
}

TEST_CASE("a device with too little memory is an error before any work, with the figure") {
  const Case made = make("ps", 2, 1, "onebit");
  FakeNccl nccl;
  const auto errors = failures(made, {.free_bytes = 1000}, nccl, 5);
  for (const std::exception_ptr& error : errors) {
    CHECK_THAT(message_of(error), Contains("MiB of GPU memory") || Contains("rank"));
  }
  CHECK_THAT(message_of(errors[0]) + message_of(errors[1]),
             Contains("0.0 of 0.0 MiB are free") && Contains("gradients 0.1"));
  CHECK(nccl.groups == 0);
}

TEST_CASE("what NCCL takes of a device is not counted as free") {
  const Case made = make("ps", 2, 1, "onebit");
  FakeNccl nccl;
  constexpr std::int64_t kAll = 64 << 20;
  const FakeDeviceOptions device{.free_bytes = kAll,
                                 .taken_bytes = [&nccl] { return nccl.joined > 0 ? kAll : 0; }};
  for (const std::exception_ptr& error : failures(made, device, nccl, 5)) {
    CHECK_THAT(message_of(error), Contains("0.0 of 64.0 MiB are free"));
  }
}

TEST_CASE("temporary memory is reserved for both codec streams at the same time") {
  const Case made = make("ps", 2, 1, "onebit");
  const Program program(made.graph, made.model, made.plan, 0);
  ScriptedEndpoint endpoint(0, 2);
  FakeDevice device({});
  std::vector<std::vector<float>> memory;
  std::vector<std::span<float>> units;
  for (const std::int64_t size : kSizes) {
    units.emplace_back(memory.emplace_back(static_cast<std::size_t>(size)));
  }
  const DeviceRuntime runtime(endpoint, program, units, device, {});
  // With two calls, the second stream could get memory that the first one has given back.
  REQUIRE(device.reserved.size() == 1);
  CHECK(device.reserved.front().first ==
        make_device_layout(program, DeviceTransport::kPinned).temporary_bytes);
  CHECK(device.reserved.front().second ==
        std::vector<Stream>{Stream::kOwnCodec, Stream::kArrivalCodec});
}

TEST_CASE("a device's runtime that goes lets a message that is being handed over go first") {
  // Rank 1 is a worker: it encodes its slice of the only gradient and sends it.
  const Case made = make("ps", 2, 1, "fp16", {64});
  const Program program(made.graph, made.model, made.plan, 1);
  ScriptedEndpoint endpoint(1, 2);
  FakeDevice device({});
  std::vector<float> values(64);
  auto runtime = std::make_unique<DeviceRuntime>(
      endpoint, program, std::vector<std::span<float>>{values}, device, DeviceRuntimeOptions{});
  std::promise<void> is_sent, go_on;
  std::atomic<bool> sending = false, destroyed_meanwhile = false;
  endpoint.exchange->on_send = [&](std::uint32_t) {
    sending = true;
    is_sent.set_value();
    go_on.get_future().wait();
    sending = false;
  };
  endpoint.exchange->on_destruction = [&] { destroyed_meanwhile = sending.load(); };
  runtime->begin(0);
  runtime->start(Clock::now());
  runtime->gradient_ready(0, Clock::now());
  is_sent.get_future().wait();
  endpoint.exchange->events.failed({0, "rank 0 closed the connection"});
  CHECK_THROWS_AS(runtime->wait(), transport::PeerError);
  // A destructor that does not wait for the handover, which takes 200 ms, is done earlier.
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    go_on.set_value();
  });
  runtime.reset();
  CHECK_FALSE(destroyed_meanwhile);
}

TEST_CASE("a device whose codec fails ends the job on every rank, and names the task") {
  const Case made = make("ring", 3, 3, "onebit");
  for (const bool direct : {false, true}) {
    FakeNccl nccl;
    ReplayOptions options = on_device({}, direct ? &nccl : nullptr);
    options.timeout_s = 5;
    const auto fake = options.device;
    options.device = [fake](int rank) -> std::unique_ptr<Device> {
      if (rank != 1) return fake(rank);
      return std::make_unique<FakeDevice>(FakeDeviceOptions{.fails_at_codec = "decode"});
    };
    const auto errors = run_ranks(3, [&](transport::Endpoint& endpoint) {
      replay::replay(endpoint, made.model, made.plan, made.graph, options);
    });
    CHECK_THAT(message_of(errors[1]), Contains("Decode g") && Contains("out of order"));
    for (const int rank : {0, 2}) {
      CHECK(culprit_of(errors[static_cast<std::size_t>(rank)]) == 1);
      CHECK_THAT(message_of(errors[static_cast<std::size_t>(rank)]), Contains("rank 1"));
    }
    if (direct) CHECK(nccl.aborted == 3);
  }
}

TEST_CASE("where NCCL fails on one rank, every rank aborts and names it") {
  const Case made = make("ring", 3, 3, "onebit");
  FakeNccl nccl;
  nccl.failing = 2;
  const auto errors = failures(made, {}, nccl, 20);
  for (const std::exception_ptr& error : errors) {
    CHECK(culprit_of(error) == 2);
    CHECK_THAT(message_of(error), Contains("NCCL on rank 2: a fault of this test's"));
  }
  CHECK(nccl.aborted == 3);
}

TEST_CASE("where a rank's NCCL does nothing, every rank ends within the timeout, with the task") {
  const Case made = make("ring", 3, 3, "onebit");
  FakeNccl nccl;
  nccl.silent = 1;
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = failures(made, {}, nccl, 1);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  // No process is dead, so each rank can only name one that it waits for or was told of.
  for (const std::exception_ptr& error : errors) {
    CHECK(culprit_of(error) >= 0);
    CHECK_THAT(message_of(error), Contains(" s") && Contains("waits for '"));
  }
  CHECK(nccl.aborted == 3);
}

TEST_CASE("a codec that hangs when no message is under way any more is told from NCCL") {
  // The server is rank 0, so rank 1 decodes only the mean, the last message that it awaits.
  const Case made = make("ps", 2, 1, "onebit", {1000});
  FakeNccl nccl;
  std::atomic<bool> hangs = false, told = false;
  const auto errors = run_ranks(
      2,
      [&](transport::Endpoint& endpoint) {
        const bool stuck = endpoint.rank() == 1;
        const Program program(made.graph, made.model, made.plan,
                              static_cast<std::uint32_t>(endpoint.rank()));
        std::vector<float> values(1000, 1.0f);
        FakeDeviceOptions own;
        if (stuck) {
          own.before_decode = [&] {
            hangs = true;
            while (!told) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          };
        }
        FakeDevice device(own);
        DeviceRuntime runtime(
            endpoint, program, {std::span<float>(values)}, device,
            DeviceRuntimeOptions{.timeout_s = stuck ? 0.5 : 600.0, .nccl = &nccl});
        runtime.begin(0);
        endpoint.all_gather("all have begun");
        runtime.start(Clock::now());
        runtime.gradient_ready(0, Clock::now());
        // Calls wait(), which starts the timeout, only when the codec hangs.
        while (stuck && !hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        try {
          runtime.wait();
          endpoint.all_gather("until the job ends");
        } catch (...) {
          if (stuck) told = true;
          throw;
        }
      },
      "memory", 600);
  for (const std::exception_ptr& error : errors) {
    CHECK(culprit_of(error) == 1);
    CHECK_THAT(message_of(error), Contains("rank 1 made no progress for 0.5 s at 'Decode g0"));
  }
}

TEST_CASE("ranks with different versions of NCCL do not begin") {
  const Case made = make("ps", 2, 1, "onebit");
  FakeNccl nccl;
  std::atomic<int> asked = 0;
  nccl.version_of = [&asked] { return asked++ == 0 ? 22809 : 22005; };
  for (const std::exception_ptr& error : failures(made, {}, nccl, 5)) {
    CHECK_THAT(message_of(error), Contains("has NCCL 2.") && Contains("install one version"));
  }
  CHECK(nccl.groups == 0);
}

TEST_CASE("GPUs verify as thread ranks over TCP through pinned memory") {
  if (!tests::has_gpu(cuda_devices())) return;
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) continue;  // replays on GPUs run no staged codecs
    for (const std::string topology : {"ps", "ring", "allreduce", "allgather"}) {
      if (topology == "allreduce" && !can_be_summed(std::string(row.name))) continue;
      const Case made = make(topology, 3, 2, std::string(row.name), {1, 33, 1000003});
      ReplayOptions options;
      options.device = [](int) { return make_cuda_device(0); };
      INFO(topology << " " << row.name);
      CHECK(replay_threads("tcp", made.model, made.plan, made.graph, options).verified);
    }
  }
}

TEST_CASE("a GPU's computation of every class is the host's") {
  if (!tests::has_gpu(cuda_devices())) return;
  constexpr std::int64_t kRows = 192, kBytes = kRows * kRows * 4;
  std::vector<float> a(kRows * kRows), b(a.size());
  fill_inputs({.seed = 1}, 0, a);
  fill_inputs({.seed = 2}, 0, b);
  const auto computed_on = [&](Device& device, models::ComputeClass what) {
    std::byte* const memory = device.allocate(3 * kBytes);
    auto* const matrices = reinterpret_cast<float*>(memory);
    std::vector<float> c(a.size());
    constexpr Stream kStream = Stream::kOwnCodec;
    device.copy(memory, a.data(), kBytes, kStream);
    device.copy(memory + kBytes, b.data(), kBytes, kStream);
    device.clear(memory + 2 * kBytes, kBytes, kStream);
    device.compute(what, matrices, matrices + a.size(), matrices + 2 * a.size(), kRows, kStream);
    device.copy(c.data(), memory + 2 * kBytes, kBytes, kStream);
    device.drain();
    return c;
  };
  FakeDevice host({});
  const auto gpu = make_cuda_device(0);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    CAPTURE(models::kComputeClassTable[i].name);
    const auto what = static_cast<models::ComputeClass>(i);
    const std::vector<float> expected = computed_on(host, what), found = computed_on(*gpu, what);
    float most = 0, wrong = 0;
    for (std::size_t at = 0; at < expected.size(); ++at) {
      most = std::max(most, std::abs(expected[at]));
      wrong = std::max(wrong, std::abs(expected[at] - found[at]));
    }
    REQUIRE(most > 0);
    // cuBLAS multiplies in TF32, with 10 fraction bits; sums of 192 products keep most of them.
    CHECK(wrong <= 4e-3F * most);
  }
}

TEST_CASE("one GPU verifies over NCCL as one rank") {
  if (!tests::has_gpu(cuda_devices())) return;
  for (const std::string form : {"raw", "fp16", "bf16"}) {
    const Case made = make("allreduce", 1, 1, form, {1, 33, 1000003});
    ReplayOptions options;
    options.device = [](int) { return make_cuda_device(0); };
    options.nccl = &transport::nccl_library();
    CHECK(replay_threads("tcp", made.model, made.plan, made.graph, options).verified);
  }
}

TEST_CASE("where a device is required, a test that finds none fails", "[!shouldfail]") {
  const Variable required("HIPRESS_REQUIRE_GPU", "1");
  tests::has_gpu(0);
}

TEST_CASE("ranks on CPUs ask for no device, and cannot use NCCL") {
  const DeviceChoice choice = choose_device({.transport = "memory"}, {});
  CHECK_FALSE(choice.device);
  CHECK(choice.nccl == nullptr);
  CHECK(choice.transport == "memory");
  CHECK_THROWS_WITH(choose_device({.transport = "nccl"}, {}), Contains("add `device` cuda"));
}

TEST_CASE("without a GPU, asking for one says what there is instead") {
  if (cuda_devices() > 0) {
    WARN("skipped: there is a GPU on this machine");
    return;
  }
  CHECK_THROWS_WITH(make_cuda_device(0), Contains("`device` cpu"));
  for (const std::string transport : {"tcp", "nccl"}) {
    CHECK_THROWS_WITH(choose_device({.device = "cuda", .transport = transport}, {}),
                      Contains("`device` cpu"));
  }
}
