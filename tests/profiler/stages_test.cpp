// Tests measurements of staged codecs, with one that takes prescribed times.

#include "profiler/stages.hpp"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "costs/profile.hpp"
#include "io/error.hpp"
#include "job/connect.hpp"
#include "profiler/device_kernels.hpp"
#include "profiler/device_overlap.hpp"
#include "replay/replay.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/runtime/fake_device.hpp"

namespace hipress::profiler {
namespace {

using Catch::Matchers::Contains;
using costs::StageCosts;

constexpr int kWorks = 3;

/// Prescribed costs of the fake codec's works, and the clock that they advance.
struct Told {
  std::array<StageCosts, kWorks> costs = {
      {{2e-5, 3e-10, 5e-11, 4e-9, 0}, {3e-5, 3e-10, 5e-11, 0, 6e-10}, {1e-5, 9e-10, 7e-11, 0, 0}}};
  double now_s = 0;
};

/// A codec that sends rows × rank, then columns × rank values, and checks the order of its works.
class FakeCodec : public kernels::Codec {
 public:
  FakeCodec(int rank, std::function<void(const StageCosts&, const costs::StageWork&)> take,
            std::array<StageCosts, kWorks> costs)
      : rank_(rank), take_(std::move(take)), costs_(costs) {}

  const kernels::CodecTraits& traits() const override { return traits_; }
  std::int64_t encoded_bytes(std::int64_t) const override { return 0; }
  void encode(std::span<const kernels::EncodeItem>, void*) const override {
    throw std::logic_error("staged");
  }
  void decode(std::span<const kernels::DecodeItem>, void*) const override {
    throw std::logic_error("staged");
  }
  std::vector<kernels::Stage> stages(kernels::Shape shape) const override {
    return {{.bytes = 4 * shape[0] * rank_, .additive = true, .rank = rank_},
            {.bytes = 4 * shape[1] * rank_, .additive = true, .rank = rank_}};
  }
  std::vector<kernels::StateArray> states(kernels::Shape shape) const override {
    return {{.name = "residual", .elements = kernels::elements_of(shape)}};
  }
  std::string refusal(kernels::Shape shape) const override {
    return shape[0] < rank_ ? "too few rows" : "";
  }
  void encode_stage(int stage, std::span<const kernels::StagedSlice> slices,
                    void* stream) const override {
    for (const kernels::StagedSlice& slice : slices)
      in(stream, [this, stage, slice] { encode_one(stage, slice); });
  }
  void decode_stages(std::span<const kernels::StagedSlice> slices, void* stream) const override {
    for (const kernels::StagedSlice& slice : slices)
      in(stream, [this, slice] { decode_one(slice); });
  }

  mutable std::atomic<int> faults = 0;

 private:
  static void in(void* stream, const std::function<void()>& work) {
    if (stream == nullptr) return work();
    static_cast<runtime::FakeStream*>(stream)->enqueue([work] {
      work();
      return true;
    });
  }
  /// Value that a work leaves for the next one to check.
  static float mark(const kernels::StagedSlice& slice, int stage) {
    return static_cast<float>(slice.key.gradient * 4 + static_cast<std::uint32_t>(stage) + 1);
  }
  void encode_one(int stage, const kernels::StagedSlice& slice) const {
    if (stage == 1 && slice.factors[0][0] != mark(slice, 0)) ++faults;
    if (static_cast<const float*>(slice.values)[0] == 0) ++faults;
    const auto values =
        static_cast<std::size_t>(stages(slice.shape)[static_cast<std::size_t>(stage)].bytes / 4);
    float* const factor = slice.factors[static_cast<std::size_t>(stage)];
    factor[0] = factor[values - 1] = mark(slice, stage);
    take_(costs_[static_cast<std::size_t>(stage)],
          costs::encode_work(stages(slice.shape), stage, kernels::elements_of(slice.shape)));
  }
  void decode_one(const kernels::StagedSlice& slice) const {
    for (const int stage : {0, 1}) {
      if (slice.factors[static_cast<std::size_t>(stage)][0] != mark(slice, stage)) ++faults;
    }
    const auto elements = static_cast<std::size_t>(kernels::elements_of(slice.shape));
    static_cast<float*>(slice.values)[0] = slice.states[0][elements - 1] = 1;
    take_(costs_[2], costs::decode_work(stages(slice.shape), kernels::elements_of(slice.shape)));
  }

  const kernels::CodecTraits traits_ = {.state_arrays = 1, .additive = true, .stages = 2};
  const int rank_;
  const std::function<void(const StageCosts&, const costs::StageWork&)> take_;
  const std::array<StageCosts, kWorks> costs_;
};

/// Fake codec that advances the clock.
std::shared_ptr<FakeCodec> codec_of(Told& told, int rank) {
  return std::make_shared<FakeCodec>(
      rank,
      [&told](const StageCosts& costs, const costs::StageWork& work) {
        told.now_s += costs.seconds(work);
      },
      told.costs);
}

/// Fake codec that really takes time.
std::shared_ptr<FakeCodec> spinning_codec(int rank) {
  return std::make_shared<FakeCodec>(
      rank,
      [](const StageCosts&, const costs::StageWork&) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      },
      Told{}.costs);
}

StageRule small_rule() {
  return {.elements = {1 << 12, 1 << 14, 1 << 16}, .budget_s = 1e-3, .cold = 1 << 14};
}

void check_close(const StageCosts& fitted, const StageCosts& costs) {
  CHECK(fitted.a_s == Approx(costs.a_s).epsilon(1e-4));
  CHECK(fitted.per_element_s == Approx(costs.per_element_s).epsilon(1e-4));
  CHECK(fitted.per_element_rank_s == Approx(costs.per_element_rank_s).epsilon(1e-4));
  CHECK(fitted.per_value_s == Approx(costs.per_value_s).epsilon(1e-4));
  CHECK(fitted.per_value_rank_s == Approx(costs.per_value_rank_s).epsilon(1e-4));
}

TEST_CASE("stages are measured of squares and oblongs, upright and lying, of each rank") {
  Told told;
  const std::vector<StagePoint> points =
      stage_points([&](int rank) { return codec_of(told, rank); },
                   {.elements = {1 << 14, 1 << 16}, .ranks = {1, 20}});
  // 2^14: 128·128; 45·362 (1:8), made 48·384 since 16 divides 48. 2^16: 256·256 and 96·768.
  using Shape = std::vector<std::int64_t>;
  REQUIRE(points.size() == 8);
  CHECK(points[0].shape == Shape{128, 128});
  CHECK(points[1].shape == Shape{48, 384});
  CHECK(points[2].shape == Shape{256, 256});
  CHECK(points[3].shape == Shape{768, 96});
  CHECK(points[7].rank == 20);
  REQUIRE(points[7].works.size() == kWorks);
  const std::int64_t elements = 768 * 96;
  CHECK(points[7].works[0] == costs::StageWork{elements, 20 * elements, 15360, 20 * 15360});
  CHECK(points[7].works[1] == costs::StageWork{elements, 20 * elements, 1920, 20 * 1920});
  CHECK(points[7].works[2] == costs::StageWork{elements, 20 * elements, 17280, 20 * 17280});
  // The matrix of 48 rows refuses rank 50, the other three do not.
  CHECK(stage_points([&](int rank) { return codec_of(told, rank); },
                     {.elements = {1 << 14, 1 << 16}, .ranks = {50}})
            .size() == 3);
}

TEST_CASE("what stages take is found from their times, and kept with the samples") {
  Told told;
  StageSeries series;
  for (int pass = 0; pass < 2; ++pass) {
    sample_stages([&](int rank) { return codec_of(told, rank); }, small_rule(), {}, 1,
                  [&] { return told.now_s; }, series);
  }
  CHECK(series.points.size() == 3 * 2 * 3);
  REQUIRE(series.passes_s.size() == 2);
  CHECK(series.passes_s[0] == Approx(series.passes_s[1]));
  // Every iteration has two steps of all slices: 4 of 2^12 elements, 1 of 2^14 or more.
  for (const auto& iterations : series.times[0]) CHECK(iterations.at(0).size() == 2 * 4);
  for (const auto& iterations : series.times[2]) CHECK(iterations.at(0).size() == 2 * 1);

  costs::Profile profile;
  const costs::CodecCosts fitted = fit_and_keep_stages("fake", series, 1, profile);
  REQUIRE(fitted.stages.size() == 2);
  check_close(fitted.stages[0], told.costs[0]);
  check_close(fitted.stages[1], told.costs[1]);
  check_close(fitted.decode_stages, told.costs[2]);
  CHECK(fit_and_keep_stages("fake", series, 2, profile).stages[0].per_element_s ==
        Approx(2 * told.costs[0].per_element_s));

  // Three works and three ranks, each fitted twice.
  REQUIRE(profile.samples.size() == 2 * 3 * 3);
  CHECK(profile.samples[0].name == "fake.stage0.rank1");
  CHECK(profile.samples[8].name == "fake.decode.rank16");
  CHECK(profile.samples[8].samples.size() == 6);
  CHECK(profile.samples[8].max_relative_residual < 1e-4);
}

TEST_CASE("a profile of a staged codec survives its file") {
  Told told;
  StageSeries series;
  sample_stages([&](int rank) { return codec_of(told, rank); }, small_rule(), {}, 1,
                [&] { return told.now_s; }, series);
  costs::Profile profile = costs::read_profile("h100-25g");
  profile.codecs["fake"] = fit_and_keep_stages("fake", series, 1, profile);
  const tests::TemporaryFolder folder;
  costs::write_profile(folder.path("p.yaml"), profile);
  costs::Profile read = costs::read_profile(folder.path("p.yaml"));
  CHECK(read.codecs == profile.codecs);
  CHECK(read.samples == profile.samples);
}

TEST_CASE("threads time stages at once, each in the stages' order") {
  const auto codec = spinning_codec(4);
  StageRule rule = small_rule();
  rule.most = 3;
  rule.budget_s = 60;
  const StagePoint point = stage_points([&](int) { return codec; }, rule).at(0);
  const StageTimes times = time_stages(*codec, point, rule, 2, steady_clock());
  REQUIRE(times.size() == kWorks);
  for (const auto& iterations : times) {
    CHECK(iterations.size() == 2 * 3);  // on two threads
    for (const auto& seconds : iterations) {
      for (const double time : seconds) CHECK(time >= 20e-6);
    }
  }
  CHECK(codec->faults == 0);
  rule.budget_s = 0;  // one iteration is always measured
  CHECK(time_stages(*codec, point, rule, 1, steady_clock())[0].size() == 1);
}

TEST_CASE("what a codec throws on a thread ends the measurement") {
  std::atomic<int> calls = 0;
  const FakeCodec codec(
      1,
      [&](const StageCosts&, const costs::StageWork&) {
        if (++calls > 40) throw std::runtime_error("out of order");
      },
      Told{}.costs);
  const StagePoint point = {
      .shape = {64, 64}, .rank = 1, .works = std::vector<costs::StageWork>(3)};
  StageRule rule = small_rule();
  rule.budget_s = 60;
  CHECK_THROWS_WITH(time_stages(codec, point, rule, 2, steady_clock()), "out of order");
}

TEST_CASE("the processes of a job have the same costs of stages") {
  std::array<costs::CodecCosts, 3> fitted;
  job::run_thread_ranks("memory", 3, 60, [&](transport::Endpoint& endpoint) {
    StageRule rule = small_rule();
    rule.elements.pop_back();
    StageSeries series;
    costs::Profile profile;
    // The third rank does not code.
    sample_stages(spinning_codec, rule, {.algorithms = {}, .nodes = 3, .endpoint = &endpoint}, 2,
                  steady_clock(), series);
    fitted[static_cast<std::size_t>(endpoint.rank())] =
        fit_and_keep_stages("fake", series, 1, profile);
  });
  CHECK(fitted[0].stages.size() == 2);
  CHECK(fitted[0] == fitted[1]);
  CHECK(fitted[0] == fitted[2]);
}

TEST_CASE("a codec that refuses all shapes is an error with a remedy") {
  costs::Profile profile;
  CHECK_THROWS_AS(fit_and_keep_stages("fake", {}, 1, profile), io::RunError);
  CHECK_THROWS_WITH(fit_and_keep_stages("fake", {}, 1, profile),
                    Contains("leave the algorithm out"));
}

TEST_CASE("an algorithm without a rank is measured as it is") {
  CHECK(ranks_of("onebit", {}) == std::vector<int>{0});
  CHECK(text_of_rank("mine(x=1)", 0) == "mine(x=1)");
  CHECK(text_of_rank("mine(x=1)", 4) == "mine(rank=4,x=1)");
}

/// A device that makes codec "fake" itself.
class StagedDevice : public runtime::FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) override {
    return algorithm == "fake" ? spinning_codec(4) : FakeDevice::codec(algorithm);
  }
};

TEST_CASE("stages are measured on a device, and what overlaps is another codec") {
  Options options{.algorithms = {"fake"}, .nodes = 2, .effort = Effort::kQuick};
  options.overlap = {.rows = 64, .elements = 1 << 14};
  options.device = [](int) {
    return std::make_unique<StagedDevice>(runtime::FakeDeviceOptions{.free_bytes = 64 << 20});
  };
  costs::Profile profile;
  measure_device_kernels(
      options, [](const std::string&) {}, profile);
  const costs::CodecCosts& costs = profile.codecs.at("fake");
  REQUIRE(costs.stages.size() == 2);
  CHECK(costs::stage_seconds(costs.stages[0], 1 << 14, 512, 4) >= 20e-6 * 0.9);
  CHECK(costs::stage_seconds(costs.decode_stages, 1 << 14, 1024, 4) >= 20e-6 * 0.9);
  std::vector<std::string> notes;
  CHECK(measure_overlap(
            options, [](const std::string&) {}, notes)
            .matrix.has_value());
}

TEST_CASE("every staged algorithm can be measured") {
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (!row.additive) continue;
    CAPTURE(row.name);
    StageRule rule = small_rule();
    const std::string name(row.name);
    rule.ranks = ranks_of(name, rule);
    StageSeries series;
    sample_stages([&](int rank) { return kernels::make_codec(text_of_rank(name, rank)); }, rule, {},
                  1, steady_clock(), series);
    costs::Profile profile;
    const costs::CodecCosts costs = fit_and_keep_stages(name, series, 1, profile);
    CHECK(costs.stages.size() ==
          static_cast<std::size_t>(kernels::make_codec(name)->traits().stages));
    CHECK(costs::stage_seconds(costs.stages[0], 1 << 16, 1024, 4) > 0);
  }
}

}  // namespace
}  // namespace hipress::profiler
