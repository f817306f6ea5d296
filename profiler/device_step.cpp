#include "profiler/device_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "casync/graph_builder.hpp"
#include "profiler/sampling.hpp"
#include "sim/simulator.hpp"

namespace hipress::profiler {
namespace {

using runtime::Stream;

struct MixRow {
  std::string_view name;
  models::Mix mix;
};

/// Mixes to check: the assumed one, one dominated by GEMM, and one bound by memory.
std::array<MixRow, 3> mixes() {
  return {{{"assumed", models::assumed_mix()},
           {"gemm", {0.75, 0.15, 0.05, 0.025, 0.025}},
           {"memory", {0.1, 0, 0.5, 0.2, 0.2}}}};
}

/// Order in which kernels run: the next is of the class that is furthest behind its share of
/// `counts`.
std::vector<models::ComputeClass> in_turn(const std::array<int, models::kComputeClasses>& counts) {
  const int all = std::accumulate(counts.begin(), counts.end(), 0);
  std::array<int, models::kComputeClasses> done{};
  std::vector<models::ComputeClass> order;
  for (int i = 1; i <= all; ++i) {
    std::size_t next = 0;
    std::int64_t most_behind = INT64_MIN;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      const std::int64_t behind = std::int64_t{counts[c]} * i - std::int64_t{done[c]} * all;
      if (done[c] == counts[c] || behind <= most_behind) continue;
      most_behind = behind;
      next = c;
    }
    ++done[next];
    order.push_back(static_cast<models::ComputeClass>(next));
  }
  return order;
}

/// Work that runs at the same time as computation, and its durations alone.
struct Beside {
  std::string_view name;
  std::vector<const Repeated*> works;
  double codec_s = 0, transfer_s = 0;
};

/// Simulates the step: a Backward, an Encode on the same node, and a message to an idle node.
double simulated_s(double compute_s, const Beside& beside, const models::Mix& mix,
                   const costs::OverlapFactors& factors) {
  costs::Profile profile;
  profile.codecs["step"].encode = {.pieces = {{.a_s = beside.codec_s}}};
  profile.link = {.overhead_s = beside.transfer_s, .bandwidth = 1e12, .bandwidth_both_ways = 1e12};
  profile.overlap = factors;
  casync::GraphBuilder builder(2);
  builder.add({.amount = casync::from_seconds(compute_s).count(), .kind = casync::Kind::kBackward});
  if (beside.codec_s > 0) {
    builder.add({.amount = 1, .kind = casync::Kind::kEncode, .algorithm = 0});
  }
  if (beside.transfer_s > 0) {
    const auto send = builder.add({.peer_offset = 1, .kind = casync::Kind::kSend});
    builder.edge(send, builder.add({.node = 1, .peer_offset = 1, .kind = casync::Kind::kRecv}));
  }
  casync::TaskGraph graph = std::move(builder).build();
  graph.mix = mix;
  const casync::Algorithm algorithm{
      .name = "step", .encoded_bytes = [](std::int64_t elements) { return elements; }};
  const sim::Result result = sim::simulate(graph, sim::TaskCosts(profile, {algorithm}),
                                           costs::cluster_from_profile(profile, 2));
  return casync::to_seconds(result.iteration);
}

class StepBench {
 public:
  StepBench(OverlapBench& bench, const Options& options)
      : bench_(bench),
        rows_(options.overlap.rows),
        long_s_(options.effort == Effort::kQuick ? 8e-3 : 40e-3) {
    for (std::size_t c = 0; c < models::kComputeClasses; ++c) {
      const auto what = static_cast<models::ComputeClass>(c);
      if (!bench.computes(what)) continue;
      const DeviceTimer::Lane once{Stream::kArrivalCodec, [this, what] {
                                     for (int i = 0; i < kBurst; ++i) compute(what);
                                   }};
      bench.timer().run(once);
      once_s_[c] = std::max(1e-8, bench.timer().together({once}) / kBurst);
    }
    const double codec_s = alone_s(bench.coding().lane());
    const double transfer_s = alone_s(bench.moving().lane());
    besides_ = {{"codec", {&bench.coding()}, codec_s, 0},
                {"transfer", {&bench.moving()}, 0, transfer_s},
                {"both", {&bench.coding(), &bench.moving()}, codec_s, transfer_s}};
  }

  std::vector<StepCheck> check(const MixRow& row, const costs::OverlapFactors& factors) {
    std::array<int, models::kComputeClasses> counts{};
    models::Mix mix{};
    double total_s = 0;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      if (once_s_[c] == 0) continue;
      const double wanted = row.mix[c] * long_s_ / once_s_[c];
      counts[c] = static_cast<int>(std::clamp(wanted + 0.5, 0.0, kMostKernels));
      mix[c] = counts[c] * once_s_[c];
      total_s += mix[c];
    }
    if (total_s == 0) return {};
    for (double& share : mix) share /= total_s;
    const DeviceTimer::Lane computing{Stream::kArrivalCodec, [this, order = in_turn(counts)] {
                                        for (const auto what : order) compute(what);
                                      }};
    const double compute_s = alone_s(computing);
    std::vector<StepCheck> checks;
    for (const Beside& beside : besides_) {
      std::vector<DeviceTimer::Lane> lanes = {computing};
      for (const Repeated* const work : beside.works) lanes.push_back(work->lane());
      checks.push_back({.name = fmt::format("{}_beside_{}", row.name, beside.name),
                        .mix = mix,
                        .measured_s = median_s(lanes),
                        .predicted_s = simulated_s(compute_s, beside, mix, factors),
                        .unslowed_s = simulated_s(compute_s, beside, mix, {})});
    }
    return checks;
  }

 private:
  static constexpr int kBurst = 4;
  /// Maximum number of kernels per class: a stream accepts about 1000 launches without blocking.
  static constexpr double kMostKernels = 180;

  /// Enqueues a kernel. GEMM and attention take n³ operations for n rows. They get half the rows,
  /// so that a step has more of these kernels.
  void compute(models::ComputeClass what) {
    using enum models::ComputeClass;
    constexpr std::int64_t kTile = 64;
    const bool is_long = what == kGemm || what == kAttention;
    bench_.compute(what, is_long ? std::max(kTile, rows_ / 2 / kTile * kTile) : rows_);
  }

  double alone_s(const DeviceTimer::Lane& lane) { return median_s({lane}); }
  double median_s(const std::vector<DeviceTimer::Lane>& lanes) {
    constexpr int kTrials = 7;
    std::vector<double> all;
    for (int trial = 0; trial < kTrials; ++trial) all.push_back(bench_.timer().together(lanes));
    return summarise(0, std::move(all)).median_s;
  }

  OverlapBench& bench_;
  const std::int64_t rows_;
  const double long_s_;
  std::array<double, models::kComputeClasses> once_s_{};  ///< 0: the device lacks the class
  std::vector<Beside> besides_;
};

}  // namespace

std::vector<StepCheck> check_steps(OverlapBench& bench, const Options& options,
                                   const costs::OverlapFactors& factors) {
  StepBench steps(bench, options);
  std::vector<StepCheck> all;
  for (const MixRow& row : mixes()) {
    for (StepCheck& check : steps.check(row, factors)) all.push_back(std::move(check));
  }
  return all;
}

}  // namespace hipress::profiler
