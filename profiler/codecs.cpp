#include "profiler/codecs.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "profiler/sampling.hpp"
#include "profiler/stages.hpp"
#include "profiler/timing.hpp"

namespace hipress::profiler {
namespace {

using casync::Kind;
using casync::TaskId;

/// Repetitions of a pass. The first iterations are warm-ups, in which encoder states settle. Codecs
/// with more states than a residual (DGC) need several steps for that.
Repetitions per_pass(const std::string& algorithm, Effort effort) {
  const bool slow_to_settle = kernels::make_codec(algorithm)->traits().state_arrays > 1;
  return {.warmups = slow_to_settle ? 8 : 2, .iterations = effort == Effort::kQuick ? 12 : 48};
}

/// Powers of two from 2^8 to 2^26 elements; quick: every other one up to 2^24. Many sizes are
/// needed, since codecs switch algorithms at some sizes (sparsifiers sample only larger slices),
/// and data outgrows one cache after the other.
std::vector<std::int64_t> codec_sizes(Effort effort) {
  const bool quick = effort == Effort::kQuick;
  std::vector<std::int64_t> all;
  for (int exponent = 8; exponent <= (quick ? 24 : 26); exponent += quick ? 2 : 1) {
    all.push_back(std::int64_t{1} << exponent);
  }
  return all;
}

/// True for sizes at which encodes that also divide are measured: large enough that an encode takes
/// longer than the fixed cost of a task, small enough for the states of a second encoder.
bool divides(std::int64_t elements) {
  return elements >= std::int64_t{1} << 16 && elements <= std::int64_t{1} << 22;
}

/// Slices by mixture. An iteration codes one mixture: all sizes up to kLargestOfMany, so a
/// temporary slowdown of the machine affects all of them, or, to save memory, one larger size.
/// Together the slices exceed any cache, so a message is no longer cached when it is decoded.
std::vector<std::vector<CodedSlice>> mixtures(Effort effort) {
  constexpr std::int64_t kLargestOfMany = std::int64_t{1} << 24;
  // Per size: total number of elements, and maximum number of slices.
  constexpr std::int64_t kElements = std::int64_t{1} << 22, kMaxSlices = 512;
  std::vector<std::vector<CodedSlice>> all(1);
  for (const std::int64_t elements : codec_sizes(effort)) {
    const auto slices = std::clamp<std::int64_t>(kElements / elements, 1, kMaxSlices);
    if (elements > kLargestOfMany) all.emplace_back();
    all.back().insert(all.back().end(), static_cast<std::size_t>(slices),
                      {.elements = elements, .quotient = divides(elements)});
  }
  return all;
}

std::vector<double> durations(const casync::TaskGraph& graph,
                              const std::vector<traces::Timeline>& timelines, Kind kind) {
  std::vector<double> seconds;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind != kind) continue;
    for (const traces::Timeline& timeline : timelines)
      seconds.push_back(casync::to_seconds(timeline.end[id] - timeline.start[id]));
  }
  return seconds;
}

/// Encodes and Decodes, by rank and in the order in which they started.
std::vector<TaskId> codec_tasks(const casync::TaskGraph& graph, const traces::Timeline& timeline) {
  std::vector<TaskId> tasks;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    if (graph[id].kind == Kind::kEncode || graph[id].kind == Kind::kDecode) tasks.push_back(id);
  }
  std::ranges::sort(tasks, {},
                    [&](TaskId id) { return std::pair(graph[id].node, timeline.start[id]); });
  return tasks;
}

/// Total seconds of an iteration's codec tasks.
double coding_s(const casync::TaskGraph& graph, const traces::Timeline& timeline) {
  casync::Picoseconds sum{};
  for (const TaskId id : codec_tasks(graph, timeline)) sum += timeline.end[id] - timeline.start[id];
  return casync::to_seconds(sum);
}

/// Seconds of the median iteration of each pass.
using Passes = std::vector<double>;

/// Times of one kind of task, by elements and iteration.
using Series = std::map<std::int64_t, std::vector<std::vector<double>>>;

struct CodecSeries {
  Series encode, decode, decode_add;
  Series quotients;            ///< encodes that divide, of the sizes in divides()
  std::vector<Passes> passes;  ///< per mixture

  Series& of(const casync::Task& task) {
    if (task.kind == Kind::kEncode)
      return (task.flags & casync::kDivideOwn) != 0 ? quotients : encode;
    return (task.flags & casync::kAccumulate) != 0 ? decode_add : decode;
  }
  /// Adds the times of an iteration's codec tasks. A task's time ends when the next one on its
  /// thread starts, so it includes the hand-over. All tasks are ready early, so the thread never
  /// waits.
  void add(const casync::TaskGraph& graph, const traces::Timeline& timeline) {
    std::map<std::pair<Series*, std::int64_t>, std::vector<double>> seconds;
    const std::vector<TaskId> tasks = codec_tasks(graph, timeline);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const casync::Task& task = graph[tasks[i]];
      const bool last = i + 1 == tasks.size() || graph[tasks[i + 1]].node != task.node;
      const casync::Picoseconds until =
          last ? timeline.end[tasks[i]] : timeline.start[tasks[i + 1]];
      seconds[{&of(task), task.amount}].push_back(
          casync::to_seconds(until - timeline.start[tasks[i]]));
    }
    for (auto& [key, of_iteration] : seconds) (*key.first)[key.second].push_back(of_iteration);
  }
};

std::vector<costs::Sample> samples_of(const Series& series, double factor = 1) {
  std::vector<costs::Sample> all;
  for (const auto& [elements, iterations] : series) {
    all.push_back(summarise_iterations(elements, iterations));
    all.back().mean_s *= factor;
  }
  return all;
}

/// Factor by which an encode takes longer if it also divides: the median over sizes, at least 1.
double factor_of_quotients(const CodecSeries& series) {
  std::map<std::int64_t, double> plain_s;
  for (const costs::Sample& sample : samples_of(series.encode)) plain_s[sample.x] = sample.mean_s;
  std::vector<double> factors;
  for (const costs::Sample& sample : samples_of(series.quotients))
    factors.push_back(sample.mean_s / plain_s.at(sample.x));
  return std::max(1.0, median_of(std::move(factors)));
}

/// Measures one pass of a codec on several ranks at the same time, one per core of a machine, up to
/// Options::nodes: in a synchronisation all cores are busy and share the memory bandwidth. All
/// processes must find the same number of ranks.
void sample_codec(const std::string& algorithm, const Options& options, const Hosts& hosts,
                  CodecSeries& series, Variations& variations) {
  const std::uint32_t ranks = std::min(static_cast<std::uint32_t>(hosts.cores()), options.nodes);
  const std::vector<std::vector<CodedSlice>> all = mixtures(options.effort);
  series.passes.resize(all.size());
  for (std::size_t mixture = 0; mixture < all.size(); ++mixture) {
    const Calibration calibration =
        codec_calibration(job_nodes(options, ranks), algorithm, all[mixture], ranks);
    const replay::ReplayResult result =
        run(calibration, options, per_pass(algorithm, options.effort));
    std::vector<double> iterations_s;
    for (const traces::Timeline& timeline : result.timelines) {
      series.add(calibration.graph, timeline);
      iterations_s.push_back(coding_s(calibration.graph, timeline));
    }
    variations.iterations.add(iterations_s);
    series.passes[mixture].push_back(median_of(std::move(iterations_s)));
  }
}

/// Measures one pass of merges; `series` is by elements and pass.
void sample_merge(const Options& options, Series& series) {
  constexpr std::uint32_t kHops = 6;
  for (const std::int64_t elements : codec_sizes(options.effort)) {
    const Calibration calibration =
        ping_pong(job_nodes(options, 2), elements, kHops, OnArrival::kMerge);
    const replay::ReplayResult result = run(calibration, options, {.warmups = 2, .iterations = 2});
    series[elements].push_back(durations(calibration.graph, result.timelines, Kind::kMerge));
  }
}

/// Times of ordinary codecs and of staged codecs, by name, and of merges.
struct AllSeries {
  std::map<std::string, CodecSeries> codecs;
  std::map<std::string, StageSeries> stages;
  Series merge;
};

/// Names under which algorithms are measured: for staged codecs, without the rank.
std::vector<std::string> measured(const std::vector<std::string>& algorithms) {
  std::vector<std::string> all;
  for (const std::string& algorithm : algorithms) {
    const bool staged = kernels::make_codec(algorithm)->traits().additive;
    std::string name = staged ? costs::with_rank(algorithm, {}) : algorithm;
    if (std::ranges::find(all, name) == all.end()) all.push_back(std::move(name));
  }
  return all;
}

void sample_staged_codec(const std::string& algorithm, const Options& options, const Hosts& hosts,
                         StageSeries& series) {
  StageRule rule = stage_rule(options.effort);
  rule.ranks = ranks_of(algorithm, rule);
  const int coding = std::min(hosts.cores(), static_cast<int>(options.nodes));
  sample_stages([&](int rank) { return kernels::make_codec(text_of_rank(algorithm, rank)); }, rule,
                options, coding, steady_clock(), series);
}

void sample_pass(const std::string& which, const Options& options, const Hosts& hosts,
                 const Progress& progress, AllSeries& all, Variations& variations) {
  for (const std::string& algorithm : measured(options.algorithms)) {
    progress("codec " + algorithm + which);
    if (kernels::make_codec(algorithm)->traits().additive) {
      sample_staged_codec(algorithm, options, hosts, all.stages[algorithm]);
    } else {
      sample_codec(algorithm, options, hosts, all.codecs[algorithm], variations);
    }
  }
  progress("merge" + which);
  sample_merge(options, all.merge);
}

Interruptions interruptions_of(const AllSeries& all) {
  Interruptions interruptions;
  for (const auto& [algorithm, series] : all.codecs) {
    for (const Series* of : {&series.encode, &series.decode, &series.decode_add}) {
      for (const auto& [elements, iterations] : *of) interruptions.add(iterations);
    }
  }
  for (const auto& [algorithm, series] : all.stages) {
    for (const StageTimes& times : series.times) {
      for (const auto& iterations : times) interruptions.add(iterations);
    }
  }
  return interruptions;
}

void add_passes(const AllSeries& all, Variations& variations) {
  for (const auto& [algorithm, series] : all.codecs) {
    for (const Passes& passes : series.passes) variations.passes.add(passes);
  }
  for (const auto& [algorithm, series] : all.stages) variations.passes.add(series.passes_s);
}

}  // namespace

void measure_codecs(const Options& options, const Hosts& hosts, const Progress& progress,
                    costs::Profile& profile, Variations& variations) {
  AllSeries all;
  for (int pass = 1; pass <= options.passes; ++pass) {
    const std::string which =
        ", pass " + std::to_string(pass) + " of " + std::to_string(options.passes);
    sample_pass(which, options, hosts, progress, all, variations);
  }
  add_passes(all, variations);
  const double factor = interruptions_of(all).factor();
  const auto fit = [&](const std::string& name, const Series& series) {
    return fit_and_keep(profile, name, samples_of(series, factor));
  };
  for (const auto& [algorithm, series] : all.codecs) {
    profile.codecs[algorithm] = {.encode = fit(algorithm + ".encode", series.encode),
                                 .decode = fit(algorithm + ".decode", series.decode),
                                 .decode_add = fit(algorithm + ".decode_add", series.decode_add),
                                 .encode_factor_quotients = factor_of_quotients(series)};
  }
  for (const auto& [algorithm, series] : all.stages)
    profile.codecs[algorithm] = fit_and_keep_stages(algorithm, series, factor, profile);
  profile.merge = fit("merge", all.merge);
}

}  // namespace hipress::profiler
