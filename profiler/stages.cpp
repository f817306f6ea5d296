#include "profiler/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "io/error.hpp"
#include "job/gather.hpp"
#include "profiler/sampling.hpp"
#include "profiler/timing.hpp"
#include "replay/inputs.hpp"

namespace hipress::profiler {
namespace {

constexpr std::int64_t kStageAlignment = 256;
constexpr int kStepsOfIteration = 2;

std::int64_t stage_aligned(std::int64_t bytes) { return casync::round_up(bytes, kStageAlignment); }

std::int64_t bytes_of(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// Shape of a matrix of about `elements` elements. The number of rows is a multiple of 16; there
/// are `aspect` times as many columns.
std::vector<std::int64_t> matrix(std::int64_t elements, std::int64_t aspect) {
  constexpr double kMultiple = 16;
  const double rows = std::sqrt(static_cast<double>(elements / aspect));
  const auto rounded =
      static_cast<std::int64_t>(kMultiple * std::max(1.0, std::round(rows / kMultiple)));
  return {rounded, rounded * aspect};
}

std::vector<costs::StageWork> works_of(const kernels::Codec& codec,
                                       const std::vector<std::int64_t>& shape) {
  const std::vector<kernels::Stage> stages = codec.stages(shape);
  const std::int64_t elements = kernels::elements_of(shape);
  std::vector<costs::StageWork> works;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage)
    works.push_back(costs::encode_work(stages, stage, elements));
  works.push_back(costs::decode_work(stages, elements));
  return works;
}

/// Zeroed host memory.
class Arena {
 public:
  explicit Arena(std::int64_t bytes)
      : memory_(static_cast<std::byte*>(
            std::aligned_alloc(kStageAlignment, static_cast<std::size_t>(stage_aligned(bytes))))) {
    if (memory_ == nullptr) throw std::bad_alloc();
    std::memset(memory_.get(), 0, static_cast<std::size_t>(stage_aligned(bytes)));
  }
  std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

/// Times threads that code at the same time. They start each iteration together, and all run the
/// same number of iterations.
class TimedThreads {
 public:
  TimedThreads(const kernels::Codec& codec, const StagePoint& point, const StageRule& rule,
               int threads, const std::function<double()>& clock)
      : codec_(codec),
        point_(point),
        rule_(rule),
        clock_(clock),
        gradient_(static_cast<std::size_t>(point.elements())),
        together_(threads, Decide{this}),
        times_(point.works.size()) {
    replay::fill_inputs({.seed = 1}, 0, gradient_);
  }

  StageTimes run(int threads) {
    {
      std::vector<std::jthread> others;
      for (int thread = 1; thread < threads; ++thread) others.emplace_back([this] { measure(); });
      measure();
    }
    if (error_) std::rethrow_exception(error_);
    return std::move(times_);
  }

 private:
  struct Decide {
    TimedThreads* threads;
    void operator()() noexcept { threads->decide(); }
  };

  /// Decides whether to run one more iteration, while all threads wait.
  void decide() noexcept {
    const double now_s = clock_();
    if (begun_ == 0) began_s_ = now_s;
    const bool enough = begun_ > 0 && now_s - began_s_ >= rule_.budget_s;
    over_ = failed_ || enough || begun_ >= rule_.most;
    ++begun_;
  }

  void measure() {
    try {
      const int count = slices_in_turn(point_, rule_);
      const Arena arena(StagedSlices::bytes(codec_, point_.shape, count));
      const StagedSlices slices(codec_, point_.shape, count, arena.data());
      StageTimes mine(point_.works.size());
      std::uint64_t step = 0;
      code(slices, step++, mine);
      mine.assign(point_.works.size(), {});  // drops the first step: its memory and states were new
      for (;;) {
        together_.arrive_and_wait();
        if (over_) break;
        for (auto& of_work : mine) of_work.emplace_back();
        for (int i = 0; i < kStepsOfIteration; ++i) code(slices, step++, mine);
      }
      keep(mine);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      failed_ = true;
      together_.arrive_and_drop();
    }
  }

  /// Runs a step: work after work on all slices, so that a work's inputs are no longer cached.
  void code(const StagedSlices& slices, std::uint64_t step, StageTimes& times) const {
    for (int slice = 0; slice < slices.count(); ++slice)
      std::memcpy(slices.values(slice), gradient_.data(), gradient_.size() * sizeof(float));
    for (int work = 0; work < slices.works(); ++work) {
      auto& iterations = times[static_cast<std::size_t>(work)];
      if (iterations.empty()) iterations.emplace_back();
      for (int slice = 0; slice < slices.count(); ++slice) {
        const double began_s = clock_();
        slices.run(work, slice, step);
        iterations.back().push_back(clock_() - began_s);
      }
    }
  }

  void keep(StageTimes& mine) {
    const std::lock_guard lock(mutex_);
    for (std::size_t work = 0; work < times_.size(); ++work)
      std::ranges::move(mine[work], std::back_inserter(times_[work]));
  }

  const kernels::Codec& codec_;
  const StagePoint& point_;
  const StageRule& rule_;
  const std::function<double()>& clock_;
  std::vector<float> gradient_;
  std::barrier<Decide> together_;
  std::mutex mutex_;
  StageTimes times_;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  int begun_ = 0;
  double began_s_ = 0;
  bool over_ = false;
};

/// Rank 0's times, on all ranks; works and slices must be equal in number. Collective in a job.
StageTimes shared(const Options& options, const StageTimes& mine, std::size_t works,
                  std::size_t of_iteration) {
  if (options.endpoint == nullptr) return mine;
  std::vector<double> all;
  for (const auto& iterations : mine) {
    for (const auto& seconds : iterations) all.insert(all.end(), seconds.begin(), seconds.end());
  }
  all = job::gather(*options.endpoint, std::span<const double>(all)).front();
  const std::size_t iterations = all.size() / works / of_iteration;
  StageTimes times(works, std::vector<std::vector<double>>(iterations));
  auto next = all.begin();
  for (auto& of_work : times) {
    for (auto& seconds : of_work) {
      seconds.assign(next, next + static_cast<std::ptrdiff_t>(of_iteration));
      next += static_cast<std::ptrdiff_t>(of_iteration);
    }
  }
  return times;
}

double median_s(const std::vector<std::vector<double>>& iterations) {
  return summarise_iterations(0, iterations).median_s;
}

std::string name_of_work(std::size_t work, std::size_t works) {
  return work + 1 == works ? "decode" : fmt::format("stage{}", work);
}

/// Keeps the samples of a work in the profile, as one series per rank.
void keep_samples(const std::string& name, std::size_t work, const costs::StageCosts& costs,
                  const std::vector<StagePoint>& points,
                  const std::vector<std::vector<costs::Sample>>& samples, costs::Profile& profile) {
  std::map<int, costs::Profile::Series> by_rank;
  std::map<int, std::vector<double>> residuals;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const costs::Sample& sample = samples[i][work];
    by_rank[points[i].rank].samples.push_back(sample);
    residuals[points[i].rank].push_back(
        std::abs(costs.seconds(points[i].works[work]) / sample.expected_s() - 1));
  }
  for (auto& [rank, series] : by_rank) {
    series.name = rank > 0 ? fmt::format("{}.rank{}", name, rank) : name;
    series.median_relative_residual = median_of(residuals[rank]);
    series.max_relative_residual = *std::ranges::max_element(residuals[rank]);
    profile.samples.push_back(std::move(series));
  }
}

}  // namespace

StageRule stage_rule(Effort effort) {
  StageRule rule;
  const bool quick = effort == Effort::kQuick;
  for (int exponent = 14; exponent <= (quick ? 22 : 24); exponent += quick ? 4 : 2)
    rule.elements.push_back(std::int64_t{1} << exponent);
  if (quick) rule.budget_s = 0.02;
  return rule;
}

std::vector<StagePoint> stage_points(const CodecOfRank& codec_of, const StageRule& rule) {
  constexpr std::int64_t kOblong = 8;
  std::vector<StagePoint> points;
  for (const int rank : rule.ranks) {
    const auto codec = codec_of(rank);
    bool upright = false;
    for (const std::int64_t elements : rule.elements) {
      std::vector<std::int64_t> oblong = matrix(elements, kOblong);
      if (upright) std::ranges::reverse(oblong);
      upright = !upright;
      for (const std::vector<std::int64_t>& shape : {matrix(elements, 1), oblong}) {
        if (codec->refusal(shape).empty())
          points.push_back({.shape = shape, .rank = rank, .works = works_of(*codec, shape)});
      }
    }
  }
  return points;
}

std::vector<int> ranks_of(const std::string& algorithm, const StageRule& rule) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  if (row == nullptr) return {0};
  const auto rank = std::ranges::find(row->parameters, "rank", &kernels::Parameter::name);
  if (rank == row->parameters.end()) return {0};
  std::vector<int> ranks;
  for (const int one : rule.ranks) {
    if (one >= rank->least && one <= rank->most) ranks.push_back(one);
  }
  return ranks;
}

std::string text_of_rank(const std::string& algorithm, int rank) {
  return rank > 0 ? costs::with_rank(algorithm, rank) : algorithm;
}

StagedSlices::StagedSlices(const kernels::Codec& codec, const std::vector<std::int64_t>& shape,
                           int count, std::byte* arena)
    : codec_(codec), shape_(shape) {
  const std::vector<kernels::Stage> stages = codec.stages(shape);
  stages_ = static_cast<int>(stages.size());
  const auto take = [&](std::int64_t bytes) {
    auto* const part = reinterpret_cast<float*>(arena);
    arena += stage_aligned(bytes);
    return part;
  };
  for (int slice = 0; slice < count; ++slice) {
    Pointers& pointers = slices_.emplace_back();
    pointers.values = take(bytes_of(elements()));
    for (const kernels::Stage& stage : stages) pointers.factors.push_back(take(stage.bytes));
    for (const kernels::StateArray& state : codec.states(shape))
      pointers.states.push_back(take(bytes_of(state.elements)));
  }
}

std::int64_t StagedSlices::bytes(const kernels::Codec& codec,
                                 const std::vector<std::int64_t>& shape, int count) {
  std::int64_t each = stage_aligned(bytes_of(kernels::elements_of(shape)));
  for (const kernels::Stage& stage : codec.stages(shape)) each += stage_aligned(stage.bytes);
  for (const kernels::StateArray& state : codec.states(shape))
    each += stage_aligned(bytes_of(state.elements));
  return count * each;
}

void StagedSlices::run(int work, int slice, std::uint64_t step, void* stream) const {
  const Pointers& pointers = slices_[static_cast<std::size_t>(slice)];
  const kernels::StagedSlice staged{
      .shape = shape_,
      .values = pointers.values,
      .factors = pointers.factors,
      .states = pointers.states,
      .key = {.seed = 1, .step = step, .gradient = static_cast<std::uint32_t>(slice)}};
  if (work < stages_) {
    codec_.encode_stage(work, {&staged, 1}, stream);
  } else {
    codec_.decode_stages({&staged, 1}, stream);
  }
}

int slices_in_turn(const StagePoint& point, const StageRule& rule) {
  constexpr std::int64_t kMaxSlices = 256;
  return static_cast<int>(std::clamp<std::int64_t>(rule.cold / point.elements(), 1, kMaxSlices));
}

StageTimes time_stages(const kernels::Codec& codec, const StagePoint& point, const StageRule& rule,
                       int threads, const std::function<double()>& clock) {
  return TimedThreads(codec, point, rule, threads, clock).run(threads);
}

std::function<double()> steady_clock() {
  return [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  };
}

void sample_stages(const CodecOfRank& codec_of, const StageRule& rule, const Options& options,
                   int coding, const std::function<double()>& clock, StageSeries& series) {
  if (series.points.empty()) {
    series.points = stage_points(codec_of, rule);
    series.times.resize(series.points.size());
  }
  const bool codes = options.endpoint == nullptr || options.endpoint->rank() < coding;
  const int threads = options.endpoint == nullptr ? coding : 1;
  double pass_s = 0;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const StagePoint& point = series.points[i];
    StageTimes times;
    if (codes) times = time_stages(*codec_of(point.rank), point, rule, threads, clock);
    times = shared(options, times, point.works.size(),
                   kStepsOfIteration * static_cast<std::size_t>(slices_in_turn(point, rule)));
    series.times[i].resize(point.works.size());
    for (std::size_t work = 0; work < times.size(); ++work) {
      pass_s += median_s(times[work]);
      std::ranges::move(times[work], std::back_inserter(series.times[i][work]));
    }
  }
  series.passes_s.push_back(pass_s);
}

costs::CodecCosts fit_and_keep_stages(const std::string& algorithm,
                                      const std::vector<StagePoint>& points,
                                      const std::vector<std::vector<costs::Sample>>& samples,
                                      costs::Profile& profile) {
  if (points.empty()) {
    throw io::RunError(
        fmt::format("codec {}: no gradient could be measured: it refuses all shapes, or memory is "
                    "short; end what else uses it, or leave the algorithm out",
                    algorithm));
  }
  costs::CodecCosts costs;
  const std::size_t works = points.front().works.size();
  for (std::size_t work = 0; work < works; ++work) {
    std::vector<costs::StageSample> of_work;
    for (std::size_t i = 0; i < points.size(); ++i)
      of_work.push_back({points[i].works[work], samples[i][work].expected_s()});
    const costs::StageCosts fitted = costs::fit_stage(of_work).costs;
    keep_samples(fmt::format("{}.{}", algorithm, name_of_work(work, works)), work, fitted, points,
                 samples, profile);
    if (work + 1 == works) {
      costs.decode_stages = fitted;
    } else {
      costs.stages.push_back(fitted);
    }
  }
  return costs;
}

costs::CodecCosts fit_and_keep_stages(const std::string& algorithm, const StageSeries& series,
                                      double factor, costs::Profile& profile) {
  std::vector<std::vector<costs::Sample>> samples;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    std::vector<costs::Sample>& of_point = samples.emplace_back();
    for (const auto& iterations : series.times[i]) {
      of_point.push_back(summarise_iterations(series.points[i].elements(), iterations));
      of_point.back().mean_s *= factor;
    }
  }
  return fit_and_keep_stages(algorithm, series.points, samples, profile);
}

}  // namespace hipress::profiler
