// Tests timing on a device: works that start together, and waits that must end.

#include "profiler/device_timer.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "io/error.hpp"
#include "tests/profiler/timed_device.hpp"
#include "tests/runtime/fake_device.hpp"

namespace hipress::profiler {
namespace {

using Catch::Matchers::Contains;
using runtime::Stream;

constexpr double kGenerous_s = 60;

TEST_CASE("the time of works together is the device's, however long the host enqueues them") {
  TimedDevice device({.launch_s = 10e-6, .flops = 30e12});
  DeviceTimer timer(device, kGenerous_s);
  constexpr std::int64_t kRows = 64;
  const auto products = [&](Stream stream, int count) {
    return DeviceTimer::Lane{stream, [&device, stream, count] {
                               for (int i = 0; i < count; ++i)
                                 device.compute(models::ComputeClass::kGemm, nullptr, nullptr,
                                                nullptr, kRows, stream);
                             }};
  };
  // A product of n rows has 2n³ operations, which take less time than their launch.
  const double one_s = 2.0 * kRows * kRows * kRows / 30e12;
  REQUIRE(one_s < 10e-6);
  CHECK(timer.together({products(Stream::kOwnCodec, 100)}) == Approx(100 * one_s));
  CHECK(timer.together({products(Stream::kOwnCodec, 100), products(Stream::kOutbound, 70)}) ==
        Approx(100 * one_s));
}

TEST_CASE("works that a device cannot take are an error that holds up nothing") {
  runtime::FakeDevice device({});
  DeviceTimer timer(device, kGenerous_s);
  const DeviceTimer::Lane broken{Stream::kOutbound, [] { throw std::runtime_error("no lane"); }};
  const DeviceTimer::Lane nothing{Stream::kOwnCodec, [] {}};
  CHECK_THROWS_WITH(timer.together({nothing, broken}), "no lane");
  CHECK(timer.together({nothing}) >= 0);
}

TEST_CASE("enqueuing that waits for the device ends all the same") {
  runtime::FakeDevice device({});
  DeviceTimer timer(device, kGenerous_s);
  const runtime::Event own = device.make_event();
  const DeviceTimer::Lane waiting{Stream::kOwnCodec, [&] {
                                    device.record(own, Stream::kOwnCodec);
                                    while (!device.done(own)) std::this_thread::yield();
                                  }};
  CHECK(timer.together({waiting}) >= 0);
}

/// A device whose work never ends.
class StuckDevice : public TimedDevice {
 public:
  StuckDevice() : TimedDevice({}) {}
  bool done(runtime::Event) override { return false; }
};

TEST_CASE("what a device does not end is an error, by the lane's own words where it has some") {
  StuckDevice device;
  DeviceTimer timer(device, 0.05);
  const DeviceTimer::Lane alone{Stream::kOwnCodec, [] {}};
  CHECK_THROWS_AS(timer.run(alone), io::RunError);
  CHECK_THROWS_WITH(timer.together({alone}), Contains("needed more than 0.05 s"));
  CHECK_THROWS_WITH(timer.burst(Stream::kOwnCodec, 1, [](int) {}), Contains("nvidia-smi"));
  DeviceTimer::Lane awaits = alone;
  awaits.give_up = [] { throw std::runtime_error("rank 1 sent nothing"); };
  CHECK_THROWS_WITH(timer.run(awaits), "rank 1 sent nothing");
}

TEST_CASE("a failure elsewhere ends waiting at once") {
  StuckDevice device;
  DeviceTimer timer(device, kGenerous_s);
  int polls = 0;
  const DeviceTimer::Lane awaits{.stream = Stream::kOwnCodec,
                                 .work = [] {},
                                 .poll =
                                     [&] {
                                       if (++polls == 3) throw std::runtime_error("rank 1 died");
                                     }};
  CHECK_THROWS_WITH(timer.together({awaits}), "rank 1 died");
}

}  // namespace
}  // namespace hipress::profiler
