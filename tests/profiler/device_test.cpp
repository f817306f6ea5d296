// Tests measurements of a device: on a fake one, over a fake NCCL, and on a GPU if there is one.

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "job/connect.hpp"
#include "profiler/calibration.hpp"
#include "profiler/device_kernels.hpp"
#include "profiler/device_overlap.hpp"
#include "profiler/device_step.hpp"
#include "profiler/profiler.hpp"
#include "profiler/sampling.hpp"
#include "profiler/shard_collectives.hpp"
#include "tests/gpu.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/profiler/timed_device.hpp"
#include "tests/runtime/fake_device.hpp"

namespace hipress::profiler {
namespace {

const Progress kSilent = [](const std::string&) {};

Options quick_on_fake() {
  Options options{
      .algorithms = {"onebit"}, .nodes = 2, .transport = "memory", .effort = Effort::kQuick};
  options.overlap = {.rows = 64, .elements = 1 << 14};
  options.device = [](int rank) {
    return std::make_unique<runtime::FakeDevice>(
        runtime::FakeDeviceOptions{.seed = static_cast<unsigned>(rank)});
  };
  return options;
}

TEST_CASE("works that do not disturb each other have factor 1, those that take turns 2") {
  const auto factors = [](double first_s, double second_s, double first_end_s,
                          double second_end_s) {
    const PairFactors found = overlap_factors({first_s, second_s, first_end_s, second_end_s});
    return std::pair(found.first, found.second);
  };
  using Pair = std::pair<double, double>;
  CHECK(factors(1, 1, 1, 1) == Pair(1, 1));
  // If works take turns, the one of 0.5 s ends after 1 s. The longer one then runs for 0.5 s more.
  CHECK(factors(1, 0.5, 1.5, 1) == Pair(2, 2));
  CHECK(factors(0.5, 1, 1, 1.5) == Pair(2, 2));
  // Different factors: the shorter work takes 1.5 times as long, 0.75 s, in which the longer one,
  // at speed 1/1.25, does 0.6 of its 1 s; its other 0.4 s end at 1.15 s.
  const Pair ways = factors(1, 0.5, 1.15, 0.75);
  CHECK(ways.first == Approx(1.25));
  CHECK(ways.second == Approx(1.5));
  CHECK(factors(1, 1, 0.9, 0.9) == Pair(1, 1));  // faster together: noise
  // A work that seems to have done nothing, or less, while the other ran.
  CHECK(factors(1, 1, 100, 99) == Pair(costs::kMaxOverlap, costs::kMaxOverlap));
  CHECK(factors(1, 1, 100, 98) == Pair(costs::kMaxOverlap, costs::kMaxOverlap));
}

/// Options with a device of little memory, for quick measurements.
Options small_on_fake() {
  Options options = quick_on_fake();
  options.device = [](int) {
    return std::make_unique<runtime::FakeDevice>(
        runtime::FakeDeviceOptions{.free_bytes = 64 << 20});
  };
  return options;
}

Options quick_on_timed(const TimedDeviceOptions& device) {
  Options options{.algorithms = {"onebit"}, .effort = Effort::kQuick};
  options.device = [device](int) { return std::make_unique<TimedDevice>(device); };
  return options;
}

/// Matrix with a different factor in every place.
costs::OverlapMatrix unlike_matrix() {
  costs::OverlapMatrix matrix{.codec_beside_transfer = 1.7, .transfer_beside_codec = 1.45};
  double next = 1.05;
  for (costs::ClassOverlap& row : matrix.classes) {
    for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) {
      row.*key.factor = next;
      next += 0.05;
    }
  }
  return matrix;
}

void check_same(const costs::OverlapMatrix& found, const costs::OverlapMatrix& expected) {
  CHECK(found.codec_beside_transfer == Approx(expected.codec_beside_transfer));
  CHECK(found.transfer_beside_codec == Approx(expected.transfer_beside_codec));
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    for (const costs::ClassOverlapKey& key : costs::kClassOverlapKeys) {
      CAPTURE(models::kComputeClassTable[i].name, key.name);
      CHECK(found.classes[i].*key.factor == Approx(expected.classes[i].*key.factor));
    }
  }
}

TEST_CASE("overlap factors are those of the device, not of the host that enqueues") {
  std::vector<std::string> notes;
  for (const Effort effort : {Effort::kQuick, Effort::kFull}) {
    Options options = quick_on_timed({.launch_s = 10e-6, .matrix = unlike_matrix()});
    options.effort = effort;
    const costs::OverlapFactors overlap = measure_overlap(options, kSilent, notes);
    REQUIRE(overlap.matrix.has_value());
    check_same(*overlap.matrix, unlike_matrix());
    options.device = quick_on_timed({.launch_s = 10e-6}).device;
    const costs::OverlapFactors none = measure_overlap(options, kSilent, notes);
    REQUIRE(none.matrix.has_value());
    check_same(*none.matrix, {});
  }
  CHECK(notes.empty());
}

/// Results of check_steps() with factors that are measured on the device.
std::vector<StepCheck> checked_steps(runtime::Device& device, const Options& options) {
  OverlapBench bench(device, options, through_host(device));
  std::vector<std::string> notes;
  return check_steps(bench, options, bench.measure(notes));
}

TEST_CASE("steps of known computation take what is simulated") {
  Options options{.algorithms = {"onebit"}, .effort = Effort::kQuick};
  SECTION("to the rounding of picoseconds and factors where all classes are alike") {
    costs::OverlapMatrix matrix{.codec_beside_transfer = 1.5, .transfer_beside_codec = 1.25};
    matrix.classes.fill({1.75, 1.25, 2, 1.5});
    TimedDevice device({.matrix = matrix});
    const std::vector<StepCheck> steps = checked_steps(device, options);
    REQUIRE(steps.size() == 9);
    for (const StepCheck& step : steps) {
      CAPTURE(step.name);
      CHECK(step.predicted_s == Approx(step.measured_s).epsilon(1e-4));
    }
  }
  SECTION("nearly, where kernels of other classes meet what runs beside them in turn") {
    TimedDevice device({.matrix = unlike_matrix()});
    for (const StepCheck& step : checked_steps(device, options)) {
      CAPTURE(step.name, step.measured_s, step.predicted_s, step.unslowed_s);
      CHECK(step.predicted_s == Approx(step.measured_s).epsilon(0.03));
      CHECK(step.unslowed_s < 0.95 * step.measured_s);
    }
  }
  SECTION("where a class cannot be computed, of the others") {
    options.overlap = {.rows = 64, .elements = 1 << 14};
    runtime::FakeDevice device({.cannot_compute = models::ComputeClass::kNorm});
    const std::vector<StepCheck> steps = checked_steps(device, options);
    REQUIRE(steps.size() == 9);
    for (const StepCheck& step : steps) {
      CHECK(step.mix.back() == 0);
      CHECK(step.measured_s > 0);
      CHECK(step.predicted_s >= step.unslowed_s);
    }
  }
}

TEST_CASE("a class that a device cannot compute has the others' mean, and a note") {
  runtime::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = quick_on_fake();
    if (direct) options.nccl = &nccl;
    // If one of two ranks has no kernels for a class, neither measures it: the other would wait.
    options.device = [&](int rank) {
      runtime::FakeDeviceOptions fake{.free_bytes = 64 << 20};
      if (!direct || rank == 1) fake.cannot_compute = models::ComputeClass::kAttention;
      return std::make_unique<runtime::FakeDevice>(fake);
    };
    std::vector<std::string> notes;
    const costs::OverlapFactors overlap = measure_overlap(options, kSilent, notes);
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().starts_with("overlap of attention was not measured"));
    REQUIRE(overlap.matrix.has_value());
    const auto& rows = overlap.matrix->classes;
    CHECK(rows[1].beside_codec == Approx((rows[0].beside_codec + rows[2].beside_codec +
                                          rows[3].beside_codec + rows[4].beside_codec) /
                                         4));
  }
}

TEST_CASE("the ceiling of kernels is the memory's bandwidth, not a cache's") {
  for (const Effort effort : {Effort::kQuick, Effort::kFull}) {
    Options options = quick_on_timed(
        {.memory_Bps = 2e12, .cache_Bps = 6e12, .cache_bytes = std::int64_t{126} << 20});
    options.algorithms.clear();
    options.effort = effort;
    costs::Profile profile;
    measure_device_kernels(options, kSilent, profile);
    CHECK(profile.memory_bandwidth == Approx(2e12));
  }
}

TEST_CASE("overlap is measured through the host and over NCCL") {
  runtime::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = small_on_fake();
    if (direct) options.nccl = &nccl;
    std::vector<std::string> notes;
    measure_overlap(options, kSilent, notes);
    CHECK(notes.empty());
    CHECK((nccl.groups > 0) == direct);
  }
  CHECK(nccl.aborted == 0);
}

TEST_CASE("where NCCL fails on one rank, measuring overlap ends on all, which abort and name it") {
  runtime::FakeNccl nccl;
  nccl.failing = 1;
  Options options = small_on_fake();
  options.nccl = &nccl;
  int culprit = -1;
  std::vector<std::string> notes;
  try {
    measure_overlap(options, kSilent, notes);
  } catch (const transport::PeerError& error) {
    culprit = error.culprit;
  }
  CHECK(culprit == 1);
  CHECK(nccl.aborted == 2);
}

TEST_CASE("where a rank's NCCL does nothing, measuring overlap ends within the timeout", "[slow]") {
  runtime::FakeNccl nccl;
  nccl.silent = 1;
  Options options = small_on_fake();
  options.nccl = &nccl;
  options.timeout_s = 2;
  std::vector<std::string> notes;
  CHECK_THROWS_AS(measure_overlap(options, kSilent, notes), transport::PeerError);
  CHECK(nccl.aborted == 2);
}

TEST_CASE("processes that measure devices keep step, and measure the same sizes", "[slow]") {
  // Rank 1 is slower, and has memory for larger slices.
  std::array<std::atomic<int>, 2> begun{};
  std::array<costs::Profile, 2> profiles;
  std::atomic<int> most_ahead = 0;
  job::run_thread_ranks("memory", 2, 60, [&](transport::Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.rank());
    Options options = quick_on_fake();
    options.algorithms = {"onebit", "tbq", "fp16", "bf16"};
    options.endpoint = &endpoint;
    options.device = [](int of) {
      return std::make_unique<runtime::FakeDevice>(
          runtime::FakeDeviceOptions{.free_bytes = of == 0 ? 6 << 20 : 64 << 20});
    };
    const Progress progress = [&](const std::string&) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ++begun[rank];
      if (rank == 0) most_ahead = std::max(most_ahead.load(), begun[0] - begun[1]);
    };
    measure_device_kernels(options, progress, profiles[rank]);
  });
  // There are six measurements: bandwidth, four codecs and merge. A rank is at most one ahead.
  CHECK(begun[0] == 6);
  CHECK(most_ahead == 1);
  REQUIRE(profiles[0].samples.size() == profiles[1].samples.size());
  for (std::size_t i = 0; i < profiles[0].samples.size(); ++i) {
    CHECK(profiles[0].samples[i].samples.size() == profiles[1].samples[i].samples.size());
  }
}

TEST_CASE("calibrations of links run on devices, through the host and over NCCL") {
  runtime::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = small_on_fake();
    if (direct) options.nccl = &nccl;
    for (const Calibration& calibration :
         {ping_pong(2, 64, 4, OnArrival::kMerge), all_reduces(2, 1000, 2),
          streams(2, {{0, 1}, {1, 0}}, 1000, 5),
          exchange(2, "onebit", {64, 1000}, 3, Messages::kSent),
          exchange(2, "onebit", {64, 1000}, 3, Messages::kKept)}) {
      CHECK(run(calibration, options, usual(options)).iteration_s.front() > 0);
    }
    CHECK((nccl.groups > 0) == direct);
  }
  CHECK(nccl.aborted == 0);
}

TEST_CASE("NCCL's collectives of shards are measured among two ranks and more, by bytes") {
  runtime::FakeNccl nccl;
  Options options = small_on_fake();
  options.nodes = 3;
  costs::Profile profile;
  measure_shard_collectives(options, kSilent, {64, 1000}, profile);
  CHECK(profile.samples.empty());  // without NCCL, data would go through the host's memory
  options.nccl = &nccl;
  measure_shard_collectives(options, kSilent, {64, 1000}, profile);
  for (const auto costs : {&costs::Profile::all_gather, &costs::Profile::reduce_scatter,
                           &costs::Profile::all_to_all}) {
    REQUIRE((profile.*costs).size() == 2);
    for (const int ranks : {2, 3}) CHECK((profile.*costs).at(ranks)(4000) > 0);
  }
  // x: bytes of all shards. Three ranks divide 64 and 1000 elements into shards of 22 and 334.
  REQUIRE(profile.samples.size() == 6);
  const std::vector<std::pair<std::string, std::int64_t>> series = {
      {"all_gather.2", 256}, {"reduce_scatter.2", 256}, {"all_to_all.2", 256},
      {"all_gather.3", 264}, {"reduce_scatter.3", 264}, {"all_to_all.3", 264}};
  for (std::size_t i = 0; i < series.size(); ++i) {
    CHECK(profile.samples[i].name == series[i].first);
    REQUIRE(profile.samples[i].samples.size() == 2);
    CHECK(profile.samples[i].samples[0].x == series[i].second);
    CHECK(profile.samples[i].samples[1].x == (i < 3 ? 4000 : 4008));
    CHECK(profile.samples[i].samples[0].repetitions == usual(options).iterations);
  }
  // Groups, of four collectives each: on 2 + 3 ranks, 3 kinds, 2 sizes, 6 iterations with warm-ups.
  CHECK(nccl.groups == 5 * 3 * 2 * 6);
  CHECK(nccl.aborted == 0);
}

TEST_CASE("a round's bytes limit how many collectives are issued at once", "[slow]") {
  runtime::FakeNccl nccl;
  Options options = small_on_fake();
  options.nccl = &nccl;
  costs::Profile profile;
  // Two collectives of 16 MiB make a round of 32 MiB, so four take two groups on each rank.
  measure_shard_collectives(options, kSilent, {1 << 22}, profile);
  CHECK(nccl.groups == 2 * 3 * 6 * 2);
}

TEST_CASE("where NCCL fails on one rank, measuring collectives ends on all, which name it") {
  runtime::FakeNccl nccl;
  nccl.failing = 1;
  Options options = small_on_fake();
  options.nccl = &nccl;
  costs::Profile profile;
  int culprit = -1;
  try {
    measure_shard_collectives(options, kSilent, {64}, profile);
  } catch (const transport::PeerError& error) {
    culprit = error.culprit;
  }
  CHECK(culprit == 1);
  CHECK(nccl.aborted == 2);
}

TEST_CASE("a device's profile is complete and survives its file", "[long]") {
  runtime::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = quick_on_fake();
    options.device = [](int) {
      return std::make_unique<runtime::FakeDevice>(
          runtime::FakeDeviceOptions{.free_bytes = 512 << 20});
    };
    if (direct) options.nccl = &nccl;
    const costs::Profile measured = measure(options, kSilent);
    CHECK(measured.device == "cuda");
    CHECK((measured.cores > 0) != direct);  // NCCL does not use the cores
    CHECK(measured.hardware.starts_with("a fake, 2 ranks "));
    CHECK(measured.memory_bandwidth > 0);
    CHECK(measured.codec("onebit").encode(1 << 20) > 0);
    CHECK(measured.link.bandwidth > 0);
    CHECK(measured.all_reduce.at(2)(1 << 20) > 0);
    CHECK((measured.all_to_all.size() == 1) == direct);
    const tests::TemporaryFolder folder;
    const std::string path = folder.path("device.yaml");
    costs::write_profile(path, measured);
    CHECK(costs::read_profile(path).overlap == measured.overlap);
  }
  CHECK(nccl.groups > 0);
  CHECK(nccl.aborted == 0);
}

TEST_CASE("sizes that a device's memory does not hold are left out") {
  Options options = small_on_fake();
  costs::Profile profile;
  measure_device_kernels(options, kSilent, profile);
  // For onebit, 256 slices of 2^14 elements take 48 MiB for values, decoded values and residuals;
  // 64 slices of the next size, 2^18, would take 192 MiB.
  const auto& encode = profile.samples.front();
  REQUIRE(encode.name == "onebit.encode");
  REQUIRE(encode.samples.size() == 2);
  CHECK(encode.samples.front().x == 1 << 10);
  CHECK(encode.samples.back().x == 1 << 14);
  options.device = [](int) {
    return std::make_unique<runtime::FakeDevice>(runtime::FakeDeviceOptions{.free_bytes = 1000});
  };
  CHECK_THROWS_WITH(measure_device_kernels(options, kSilent, profile),
                    Catch::Contains("not enough to measure anything"));
}

TEST_CASE("a GPU's codecs are measured") {
  if (!tests::has_gpu(runtime::cuda_devices())) return;
  Options options{.algorithms = {"onebit"}, .effort = Effort::kQuick};
  options.device = [](int) { return runtime::make_cuda_device(0); };
  costs::Profile profile;
  measure_device_kernels(options, kSilent, profile);
  CHECK(profile.memory_bandwidth > 0);
  CHECK(profile.codec("onebit").decode(1 << 22) > 0);
  std::vector<std::string> notes;
  CHECK(measure_overlap(options, kSilent, notes).matrix.has_value());
  CHECK(notes.empty());
}

}  // namespace
}  // namespace hipress::profiler
