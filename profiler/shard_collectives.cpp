#include "profiler/shard_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>

#include "job/clock.hpp"
#include "job/connect.hpp"
#include "job/gather.hpp"
#include "profiler/sampling.hpp"
#include "runtime/rounds.hpp"
#include "transport/nccl.hpp"

namespace hipress::profiler {
namespace {

using Operation = transport::NcclOperation;
using runtime::Stream;
using transport::Clock;

constexpr Stream kStream = Stream::kOutbound;

/// How many are under way at a time, as of all-reduces.
constexpr std::int64_t kCount = 4;

struct CollectiveKind {
  Operation::Kind kind;
  const char* name;    ///< for progress
  const char* series;  ///< of samples, before ".N"
  costs::GatherCosts costs::Profile::*costs;
};
constexpr CollectiveKind kKinds[] = {
    {Operation::Kind::kAllGather, "all-gather", "all_gather", &costs::Profile::all_gather},
    {Operation::Kind::kReduceScatter, "reduce-scatter", "reduce_scatter",
     &costs::Profile::reduce_scatter},
    {Operation::Kind::kAllToAll, "all-to-all", "all_to_all", &costs::Profile::all_to_all}};

/// fp32 elements of equal shards, in bytes.
std::int64_t shards_bytes(std::int64_t elements, std::int64_t ranks) {
  const std::int64_t of_a_shard = (elements + ranks - 1) / ranks;
  return of_a_shard * ranks * static_cast<std::int64_t>(sizeof(float));
}

/// One rank's collectives, in memory that is as large as the largest of them take.
class Rank {
 public:
  Rank(const Options& options, transport::Endpoint& endpoint, std::int64_t most_bytes)
      : options_(options),
        endpoint_(endpoint),
        device_(options.device(endpoint.rank())),
        communicator_(endpoint, *options.nccl, options.timeout_s),
        done_(device_->make_event()),
        clock_(endpoint),
        most_bytes_(most_bytes),
        memory_(device_->allocate(2 * kCount * most_bytes)) {
    device_->clear(memory_, 2 * kCount * most_bytes, kStream);
    device_->drain();
  }

  /// Seconds of one, by iteration; the same on all ranks.
  std::vector<double> measure(Operation::Kind kind, std::int64_t bytes) {
    try {
      const Repetitions repetitions = usual(options_);
      std::vector<double> seconds;
      for (int i = 0; i < repetitions.warmups + repetitions.iterations; ++i) {
        const double all_s = iterate(kind, bytes);
        if (i >= repetitions.warmups) seconds.push_back(all_s / kCount);
      }
      return seconds;
    } catch (...) {
      communicator_.abandon();  // what waits on the GPU for other ranks ends now
      throw;
    }
  }

 private:
  /// From the common start to the end of all of them on the last rank.
  double iterate(Operation::Kind kind, std::int64_t bytes) {
    std::vector<Operation> all;
    for (std::int64_t number = 0; number < kCount; ++number) {
      std::byte* const memory = memory_ + 2 * number * most_bytes_;
      all.push_back({.kind = kind,
                     .tag = static_cast<std::uint32_t>(number),
                     .memory = memory,
                     .bytes = bytes,
                     .into = memory + most_bytes_});
    }
    const Clock::time_point start = clock_.agree_on_start();
    std::this_thread::sleep_until(start);
    // As many to a group as the runtime issues at once.
    const std::int64_t at_once =
        std::clamp(runtime::RoundLimits{}.bytes / bytes, std::int64_t{1}, kCount);
    for (std::int64_t first = 0; first < kCount; first += at_once) {
      const auto many = static_cast<std::size_t>(std::min(at_once, kCount - first));
      communicator_.issue(std::span(all).subspan(static_cast<std::size_t>(first), many),
                          device_->handle(kStream));
    }
    device_->record(done_, kStream);
    wait_for(all);
    const std::chrono::duration<double> mine = Clock::now() - start;
    const std::vector<double> took_s = job::gather(endpoint_, mine.count());
    return *std::ranges::max_element(took_s);
  }

  void wait_for(std::span<const Operation> awaited) {
    const auto deadline = Clock::now() + std::chrono::duration<double>(options_.timeout_s);
    while (!device_->done(done_)) {
      communicator_.check(awaited);
      if (Clock::now() > deadline) communicator_.give_up(awaited);
      std::this_thread::yield();
    }
  }

  const Options& options_;
  transport::Endpoint& endpoint_;
  const std::unique_ptr<runtime::Device> device_;
  transport::NcclCommunicator communicator_;  ///< ends before the device, which waits for it
  const runtime::Event done_;
  job::CommonClock clock_;
  const std::int64_t most_bytes_;
  std::byte* const memory_;  ///< of each of kCount its own, and what an all-to-all goes into
};

/// Calls `body` as each of so many ranks.
void on_ranks(const Options& options, std::uint32_t ranks,
              const std::function<void(transport::Endpoint&)>& body) {
  if (options.endpoint != nullptr) return body(*options.endpoint);
  job::run_thread_ranks(options.transport, static_cast<int>(ranks), options.timeout_s, body);
}

/// Of each kind the samples among so many ranks.
std::vector<std::vector<costs::Sample>> sample_kinds(const Options& options, std::uint32_t ranks,
                                                     const std::vector<std::int64_t>& sizes) {
  std::vector<std::vector<costs::Sample>> samples(std::size(kKinds));
  on_ranks(options, ranks, [&](transport::Endpoint& endpoint) {
    Rank rank(options, endpoint, shards_bytes(sizes.back(), ranks));
    const bool keeps = options.endpoint != nullptr || endpoint.rank() == 0;
    for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) {
      for (const std::int64_t elements : sizes) {
        const std::int64_t bytes = shards_bytes(elements, ranks);
        const std::vector<double> seconds = rank.measure(kKinds[kind].kind, bytes);
        if (keeps) samples[kind].push_back(summarise(bytes, seconds));
      }
    }
  });
  return samples;
}

}  // namespace

void measure_shard_collectives(const Options& options, const Progress& progress,
                               const std::vector<std::int64_t>& sizes, costs::Profile& profile) {
  if (options.nccl == nullptr) return;
  for (std::uint32_t ranks = job_nodes(options, 2); ranks <= options.nodes; ++ranks) {
    progress(fmt::format("all-gather, reduce-scatter and all-to-all of {} ranks", ranks));
    auto samples = sample_kinds(options, ranks, sizes);
    for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) {
      const CollectiveKind& one = kKinds[kind];
      (profile.*one.costs)[static_cast<int>(ranks)] =
          fit_and_keep(profile, fmt::format("{}.{}", one.series, ranks), std::move(samples[kind]));
    }
  }
}

}  // namespace hipress::profiler
