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

using transport::Clock;
using transport::NcclOperation;

/// Number of collectives that are timed together, as for all-reduces.
constexpr std::int64_t kCount = 4;

enum class Operation : std::uint8_t { kAllGather, kReduceScatter, kAllToAll };

struct CollectiveKind {
  Operation kind;
  NcclOperation::Kind nccl;
  const char* series;  ///< name of its samples, before ".N"
  costs::GatherCosts costs::Profile::*costs;
};
constexpr CollectiveKind kKinds[] = {
    {Operation::kAllGather, NcclOperation::Kind::kAllGather, "all_gather",
     &costs::Profile::all_gather},
    {Operation::kReduceScatter, NcclOperation::Kind::kReduceScatter, "reduce_scatter",
     &costs::Profile::reduce_scatter},
    {Operation::kAllToAll, NcclOperation::Kind::kAllToAll, "all_to_all",
     &costs::Profile::all_to_all}};

/// Bytes of `elements` fp32 elements, rounded up to equal shards.
std::int64_t shards_bytes(std::int64_t elements, std::int64_t ranks) {
  const std::int64_t of_a_shard = (elements + ranks - 1) / ranks;
  return of_a_shard * ranks * static_cast<std::int64_t>(sizeof(float));
}

/// A library as one rank uses it, with memory for the largest collectives.
class Library {
 public:
  virtual ~Library() = default;
  /// Runs kCount collectives together, with `bytes` of all shards each, to their end on this rank.
  virtual void run(const CollectiveKind& kind, std::int64_t bytes) = 0;
  /// Ends waits for other ranks after this rank has failed.
  virtual void abandon() noexcept = 0;
};

class Nccl : public Library {
 public:
  Nccl(const Options& options, transport::Endpoint& endpoint, std::int64_t most_bytes)
      : timeout_s_(options.timeout_s),
        device_(options.device(endpoint.rank())),
        communicator_(endpoint, *options.nccl, options.timeout_s),
        done_(device_->make_event()),
        most_bytes_(most_bytes),
        memory_(device_->allocate(2 * kCount * most_bytes)) {
    device_->clear(memory_, 2 * kCount * most_bytes, kStream);
    device_->drain();
  }

  void run(const CollectiveKind& kind, std::int64_t bytes) override {
    std::vector<NcclOperation> all;
    for (std::int64_t number = 0; number < kCount; ++number) {
      std::byte* const memory = memory_ + 2 * number * most_bytes_;
      all.push_back({.kind = kind.nccl,
                     .tag = static_cast<std::uint32_t>(number),
                     .memory = memory,
                     .bytes = bytes,
                     .into = memory + most_bytes_});
    }
    // A group has as many collectives as the runtime issues at once.
    const std::int64_t at_once =
        std::clamp(runtime::RoundLimits{}.bytes / bytes, std::int64_t{1}, kCount);
    for (std::int64_t first = 0; first < kCount; first += at_once) {
      const auto many = static_cast<std::size_t>(std::min(at_once, kCount - first));
      communicator_.issue(std::span(all).subspan(static_cast<std::size_t>(first), many),
                          device_->handle(kStream));
    }
    device_->record(done_, kStream);
    wait_for(all);
  }
  void abandon() noexcept override { communicator_.abandon(); }

 private:
  static constexpr runtime::Stream kStream = runtime::Stream::kOutbound;

  void wait_for(std::span<const NcclOperation> awaited) {
    const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s_);
    while (!device_->done(done_)) {
      communicator_.check(awaited);
      if (Clock::now() > deadline) communicator_.give_up(awaited);
      std::this_thread::yield();
    }
  }

  const double timeout_s_;
  const std::unique_ptr<runtime::Device> device_;
  transport::NcclCommunicator communicator_;  ///< destroyed before the device, which waits for it
  const runtime::Event done_;
  const std::int64_t most_bytes_;
  std::byte* const memory_;  ///< for each of kCount collectives: its input, and the output of an
                             ///< all-to-all
};

/// A transport's own library on the host, which runs collectives one after the other.
class Host : public Library {
 public:
  Host(std::unique_ptr<transport::Collective> collective, std::size_t ranks,
       std::int64_t most_bytes)
      : collective_(std::move(collective)),
        ranks_(ranks),
        all_(static_cast<std::size_t>(most_bytes)),
        other_(static_cast<std::size_t>(most_bytes)) {}

  void run(const CollectiveKind& kind, std::int64_t bytes) override {
    const std::span all = std::span(all_).first(static_cast<std::size_t>(bytes));
    const std::span other = std::span(other_).first(all.size());
    const std::span shard = other.first(all.size() / ranks_);
    transport::ShardCollectives& shards = *collective_->shards();
    for (std::int64_t number = 0; number < kCount; ++number) {
      switch (kind.kind) {
        case Operation::kAllGather:
          shards.all_gather(shard, all);
          break;
        case Operation::kReduceScatter:
          shards.reduce_scatter(all, shard, transport::kFloatAddition);
          break;
        case Operation::kAllToAll:
          shards.all_to_all(all, other);
          break;
      }
    }
  }
  void abandon() noexcept override { collective_->interrupt(); }

 private:
  const std::unique_ptr<transport::Collective> collective_;
  const std::size_t ranks_;
  std::vector<std::byte> all_, other_;
};

/// Opens NCCL or the transport's library. Null if the transport's lacks these collectives.
std::unique_ptr<Library> open_library(const Options& options, transport::Endpoint& endpoint,
                                      std::int64_t most_bytes) {
  if (options.nccl != nullptr) return std::make_unique<Nccl>(options, endpoint, most_bytes);
  auto collective = endpoint.collective();
  if (collective->shards() == nullptr) return nullptr;
  return std::make_unique<Host>(std::move(collective), static_cast<std::size_t>(endpoint.size()),
                                most_bytes);
}

/// Seconds of one collective, by iteration: the time from the common start of all kCount to their
/// end on the last rank, divided by kCount. All ranks get the same.
std::vector<double> measure(Library& library, const CollectiveKind& kind, std::int64_t bytes,
                            const Options& options, transport::Endpoint& endpoint,
                            job::CommonClock& clock) {
  const Repetitions repetitions = usual(options);
  std::vector<double> seconds;
  for (int i = 0; i < repetitions.warmups + repetitions.iterations; ++i) {
    const Clock::time_point start = clock.agree_on_start();
    std::this_thread::sleep_until(start);
    library.run(kind, bytes);
    const std::chrono::duration<double> mine = Clock::now() - start;
    const std::vector<double> took_s = job::gather(endpoint, mine.count());
    if (i >= repetitions.warmups)
      seconds.push_back(*std::ranges::max_element(took_s) / static_cast<double>(kCount));
  }
  return seconds;
}

/// Calls `body` for each of `ranks` ranks; in a job of processes, for this process's rank.
void on_ranks(const Options& options, std::uint32_t ranks,
              const std::function<void(transport::Endpoint&)>& body) {
  if (options.endpoint != nullptr) return body(*options.endpoint);
  job::run_thread_ranks(options.transport, static_cast<int>(ranks), options.timeout_s, body);
}

/// Samples of each kind among `ranks` ranks; empty if the library lacks these collectives.
std::vector<std::vector<costs::Sample>> sample_kinds(const Options& options,
                                                     const Progress& progress, std::uint32_t ranks,
                                                     const std::vector<std::int64_t>& sizes) {
  std::vector<std::vector<costs::Sample>> samples;
  on_ranks(options, ranks, [&](transport::Endpoint& endpoint) {
    const auto library = open_library(options, endpoint, shards_bytes(sizes.back(), ranks));
    if (library == nullptr) return;
    const bool keeps = options.endpoint != nullptr || endpoint.rank() == 0;
    if (keeps) {
      progress(fmt::format("all-gather, reduce-scatter and all-to-all of {} ranks", ranks));
      samples.resize(std::size(kKinds));
    }
    job::CommonClock clock(endpoint);
    try {
      for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) {
        for (const std::int64_t elements : sizes) {
          const std::int64_t bytes = shards_bytes(elements, ranks);
          const std::vector<double> seconds =
              measure(*library, kKinds[kind], bytes, options, endpoint, clock);
          if (keeps) samples[kind].push_back(summarise(bytes, seconds));
        }
      }
    } catch (...) {
      library->abandon();
      throw;
    }
  });
  return samples;
}

}  // namespace

void measure_shard_collectives(const Options& options, const Progress& progress,
                               const std::vector<std::int64_t>& sizes, costs::Profile& profile) {
  // A device's collectives through the host include copies, which are not measured here.
  if (options.nccl == nullptr && options.device) return;
  for (std::uint32_t ranks = job_nodes(options, 2); ranks <= options.nodes; ++ranks) {
    auto samples = sample_kinds(options, progress, ranks, sizes);
    if (samples.empty()) return;
    for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) {
      const CollectiveKind& one = kKinds[kind];
      (profile.*one.costs)[static_cast<int>(ranks)] =
          fit_and_keep(profile, fmt::format("{}.{}", one.series, ranks), std::move(samples[kind]));
    }
  }
}

}  // namespace hipress::profiler
