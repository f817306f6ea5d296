#include "bench/device_rows.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "tests/profiler/timed_device.hpp"

using namespace hipress;
using profiler::TimedDevice;
using profiler::TimedDeviceOptions;

namespace {

/// Rows of the benchmark by "CASE REFERENCE", for one size, which keeps their number small.
std::map<std::string, nlohmann::json> rows_of(const TimedDeviceOptions& device,
                                              const std::string& only) {
  TimedDevice timed(device);
  bench::Report report;
  bench::add_device_rows(report, timed,
                         {.elements = {1 << 24},
                          .overlap_elements = 1 << 24,
                          .rows = 4096,
                          .launches = 100,
                          .only = only},
                         false);
  std::map<std::string, nlohmann::json> rows;
  const nlohmann::json json = report.json();
  for (const auto& row : json["rows"]) {
    rows[row["case"].get<std::string>() + " " + row["reference_name"].get<std::string>()] = row;
  }
  return rows;
}

}  // namespace

TEST_CASE("a device's rows are what its speed makes them") {
  const auto rows = rows_of({}, "onebit.");
  // At 2 TB/s, an encode moves 12 bytes per element for 4 of gradient: 2/3 TB/s. A copy moves 8.
  REQUIRE(rows.size() == 6);
  CHECK(rows.at("onebit.encode.2^24 copy")["value"].get<double>() ==
        Approx(2000.0 / 3).epsilon(0.01));
  CHECK(rows.at("onebit.encode.2^24 copy")["reference"].get<double>() ==
        Approx(1000).epsilon(0.01));
  CHECK(rows.at("onebit.encode.2^24 copy")["ratio"].get<double>() ==
        Approx(8.0 / 12).epsilon(0.01));
  // Least traffic per element: 12.125 bytes for an encode with its residual, 4.125 for a decode.
  CHECK(rows.at("onebit.encode.2^24 traffic_floor")["ratio"].get<double>() ==
        Approx(12.125 / 12).epsilon(0.01));
  CHECK(rows.at("onebit.decode.2^24 traffic_floor")["ratio"].get<double>() ==
        Approx(4.125 / 12).epsilon(0.01));
}

TEST_CASE("launches take the host's time") {
  const auto rows = rows_of({.launch_s = 7e-6}, "launch.");
  REQUIRE(rows.size() == 2);
  // The device waits for the host, which takes 7 us to enqueue each launch.
  CHECK(rows.at("launch.device allowed")["value"].get<double>() == Approx(7).epsilon(0.01));
}

TEST_CASE("overlaps are told in both directions, of every class of computation") {
  costs::OverlapMatrix matrix{.codec_beside_transfer = 1.2, .transfer_beside_codec = 1.4};
  double next = 1.05;
  for (costs::ClassOverlap& row : matrix.classes) {
    for (const auto& key : costs::kClassOverlapKeys) row.*key.factor = next += 0.05;
  }
  const auto rows = rows_of({.matrix = matrix}, "overlap.");
  // Two rows for codec and copy. For each class, two in which it is slowed, two in which it slows.
  REQUIRE(rows.size() == 2 + 4 * models::kComputeClasses);
  const auto is = [&](const std::string& name, double factor) {
    CAPTURE(name);
    CHECK(rows.at("overlap." + name + " alone")["value"].get<double>() ==
          Approx(factor).epsilon(0.02));
  };
  is("codec_beside_copy", 1.2);
  is("copy_beside_codec", 1.4);
  for (std::size_t i = 0; i < models::kComputeClasses; ++i) {
    const std::string name(models::kComputeClassTable[i].name);
    is(name + "_beside_codec", matrix.classes[i].beside_codec);
    is(name + "_beside_copy", matrix.classes[i].beside_transfer);
    is("codec_beside_" + name, matrix.classes[i].slows_codec);
    is("copy_beside_" + name, matrix.classes[i].slows_transfer);
  }
}
