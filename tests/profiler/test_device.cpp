// Measuring a device, on a fake one and over a fake NCCL; on a GPU where there is one.

#include <catch2/catch.hpp>
#include <filesystem>

#include "profiler/calibration.hpp"
#include "profiler/device_kernels.hpp"
#include "profiler/profiler.hpp"
#include "profiler/sampling.hpp"
#include "tests/executor/fake_device.hpp"

namespace hipress::profiler {
namespace {

const Progress kSilent = [](const std::string&) {};

Options quick_on_fake() {
  Options options{
      .algorithms = {"onebit"}, .nodes = 2, .transport = "memory", .effort = Effort::kQuick};
  options.device = [](int rank) {
    return std::make_unique<executor::FakeDevice>(
        executor::FakeDeviceOptions{.seed = static_cast<unsigned>(rank)});
  };
  return options;
}

TEST_CASE("works that do not disturb each other have factor 1, serial ones their sum's share") {
  CHECK(overlap_factor(1, 1, 1) == 1);
  CHECK(overlap_factor(1, 1, 2) == 2);
  CHECK(overlap_factor(1, 0.5, 1.5) == 1.5);
  CHECK(overlap_factor(1, 1, 0.9) == 1);  // noise
  CHECK(overlap_factor(1, 1, 100) == costs::kMostOverlap);
}

/// A device of little memory, for quick measurements.
Options small_on_fake() {
  Options options = quick_on_fake();
  options.device = [](int) {
    return std::make_unique<executor::FakeDevice>(
        executor::FakeDeviceOptions{.free_bytes = 64 << 20});
  };
  return options;
}

TEST_CASE("overlap factors of a device lie within what a profile may say") {
  executor::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = small_on_fake();
    if (direct) options.nccl = &nccl;
    const costs::OverlapFactors overlap = measure_overlap(options, kSilent);
    for (const double factor :
         {overlap.compute_codec, overlap.compute_transfer, overlap.codec_transfer}) {
      CHECK(factor >= 1);
      CHECK(factor <= costs::kMostOverlap);
    }
    CHECK((nccl.groups > 0) == direct);
  }
}

TEST_CASE("calibrations of links run on devices, through the host and over NCCL") {
  executor::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = small_on_fake();
    if (direct) options.nccl = &nccl;
    for (const Calibration& calibration :
         {ping_pong(2, 64, 4, OnArrival::kMerge), all_reduces(2, 1000, 2),
          streams(2, {{0, 1}, {1, 0}}, 1000, 5), synchronisation(2, "onebit", {64, 1000}, 3)}) {
      CHECK(run(calibration, options, usual(options)).iteration_s.front() > 0);
    }
    CHECK((nccl.groups > 0) == direct);
  }
  CHECK(nccl.aborted == 0);
}

TEST_CASE("a device's profile is complete and survives its file", "[long]") {
  executor::FakeNccl nccl;
  for (const bool direct : {false, true}) {
    Options options = quick_on_fake();
    if (direct) options.nccl = &nccl;
    const costs::Profile measured = measure(options, kSilent);
    CHECK(measured.device == "cuda");
    CHECK((measured.cores > 0) != direct);  // NCCL leaves the cores alone
    CHECK(measured.hardware.starts_with("a fake, 2 ranks "));
    CHECK(measured.memory_bandwidth > 0);
    CHECK(measured.codec("onebit").encode(1 << 20) > 0);
    CHECK(measured.link.bandwidth > 0);
    CHECK(measured.all_reduce.at(2)(1 << 20) > 0);
    for (const double factor : {measured.overlap.compute_codec, measured.overlap.compute_transfer,
                                measured.overlap.codec_transfer}) {
      CHECK(factor >= 1);
      CHECK(factor <= costs::kMostOverlap);
    }
    const std::string path = std::filesystem::temp_directory_path() / "hipress_test_device.yaml";
    costs::write_profile(path, measured);
    CHECK(costs::read_profile(path).overlap == measured.overlap);
    std::filesystem::remove(path);
  }
  CHECK(nccl.groups > 0);
  CHECK(nccl.aborted == 0);
}

TEST_CASE("sizes that a device's memory does not hold are left out") {
  Options options = small_on_fake();
  costs::Profile profile;
  measure_device_kernels(options, kSilent, profile);
  // Of onebit, 256 slices of 2^14 elements are 48 MiB of values, what they are decoded into and
  // residuals; the next size's 64 slices of 2^18 are 192 MiB.
  const auto& encode = profile.samples.front();
  REQUIRE(encode.name == "onebit.encode");
  REQUIRE(encode.samples.size() == 2);
  CHECK(encode.samples.front().x == 1 << 10);
  CHECK(encode.samples.back().x == 1 << 14);
  options.device = [](int) {
    return std::make_unique<executor::FakeDevice>(executor::FakeDeviceOptions{.free_bytes = 1000});
  };
  CHECK_THROWS_WITH(measure_device_kernels(options, kSilent, profile),
                    Catch::Contains("not enough to measure anything"));
}

TEST_CASE("a GPU's codecs are measured") {
  if (executor::cuda_devices() == 0) {
    WARN("skipped: no GPU on this machine");
    return;
  }
  Options options{.algorithms = {"onebit"}, .effort = Effort::kQuick};
  options.device = [](int) { return executor::make_cuda_device(0); };
  costs::Profile profile;
  measure_device_kernels(options, kSilent, profile);
  CHECK(profile.memory_bandwidth > 0);
  CHECK(profile.codec("onebit").decode(1 << 22) > 0);
  const costs::OverlapFactors overlap = measure_overlap(options, kSilent);
  CHECK(overlap.compute_codec >= 1);
}

}  // namespace
}  // namespace hipress::profiler
