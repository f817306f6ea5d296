#include "replay/probes.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <latch>
#include <memory>
#include <new>
#include <vector>

#include "io/processors.hpp"
#include "job/connect.hpp"
#include "job/exhaustion.hpp"
#include "job/gather.hpp"
#include "kernels/codec/codec.hpp"
#include "replay/replay.hpp"

namespace hipress::replay {
namespace {

constexpr int kRepetitions = 7;
/// Two threads, because cores share the memory bandwidth and a synchronisation uses several cores.
/// More threads are not needed to notice a change of speed.
constexpr int kMaxThreads = 2;
constexpr std::size_t kCopied = std::size_t{32} << 20;  // more than the cache of a few cores
constexpr std::int64_t kEncoded = std::int64_t{1} << 21;
constexpr std::size_t kSent = std::size_t{8} << 20;

double since_s(transport::Clock::time_point start) {
  return std::chrono::duration<double>(transport::Clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Work that one thread repeats; created on that thread.
using Work = std::function<void()>;

/// Durations in seconds of all repetitions on all threads, after an untimed repetition.
std::vector<double> time_together(int threads, int repetitions,
                                  const std::function<Work()>& make_work) {
  std::latch warm(threads);
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(threads));
  const auto body = [&](int thread) {
    Work work;
    try {
      work = make_work();
      work();
    } catch (...) {
      warm.count_down();  // otherwise the other threads would wait for this one
      throw;
    }
    warm.arrive_and_wait();
    for (int i = 0; i < repetitions; ++i) {
      const auto start = transport::Clock::now();
      work();
      seconds[static_cast<std::size_t>(thread)].push_back(since_s(start));
    }
  };
  for (const std::exception_ptr& error : job::run_together("core", threads, body)) {
    if (error) std::rethrow_exception(error);
  }
  std::vector<double> all;
  for (const auto& of_thread : seconds) all.insert(all.end(), of_thread.begin(), of_thread.end());
  return all;
}

Work copying(std::size_t bytes) {
  const std::shared_ptr<char[]> from(new char[bytes]), to(new char[bytes]);
  std::memset(from.get(), 1, bytes);
  return [from, to, bytes] { std::memcpy(to.get(), from.get(), bytes); };
}

/// Encodes onebit with its residual, as a synchronisation does.
Work encoding() {
  struct Slice {
    std::unique_ptr<kernels::Codec> codec = kernels::make_codec("onebit");
    std::vector<float> values, residual;
    std::unique_ptr<std::byte[]> message;
  };
  const auto slice = std::make_shared<Slice>();
  std::uint32_t random = 1;
  for (std::int64_t i = 0; i < kEncoded; ++i) {
    random = random * 1664525u + 1013904223u;  // Numerical Recipes' generator
    slice->values.push_back(static_cast<float>(random >> 8) * 0x1p-24f - 0.5f);
  }
  slice->residual.assign(slice->values.size(), 0);
  slice->message.reset(
      new std::byte[static_cast<std::size_t>(slice->codec->encoded_bytes(kEncoded))]);
  return [slice] {
    const kernels::EncodeItem item = {.values = slice->values.data(),
                                      .elements = kEncoded,
                                      .state = {.data = slice->residual.data(), .stride = kEncoded},
                                      .message = slice->message.get(),
                                      .key = {}};
    slice->codec->encode({&item, 1});
  };
}

int probing_threads() { return std::min(kMaxThreads, static_cast<int>(io::usable_cores().size())); }

double encode_bandwidth() {
  const int threads = probing_threads();
  const double bytes = static_cast<double>(kEncoded) * sizeof(float);
  return threads * bytes / median_of(time_together(threads, kRepetitions, encoding));
}

/// Bytes per second in each direction between two ranks that send to each other at once.
double transport_bandwidth(const ProbeOptions& options) {
  std::vector<double> seconds;
  job::run_thread_ranks(
      options.transport, 2, options.timeout_s, [&](transport::Endpoint& endpoint) {
        const std::vector<std::byte> source(kSent);
        std::vector<std::byte> destination(kSent);
        const int peer = 1 - endpoint.rank();
        const auto exchange =
            endpoint.prepare({{.peer = peer, .tag = 0, .source = source}},
                             {{.peer = peer, .tag = 0, .destination = destination}}, {});
        for (int i = 0; i <= kRepetitions; ++i) {
          exchange->begin(static_cast<std::uint64_t>(i));
          endpoint.all_gather("ready");
          const auto start = transport::Clock::now();
          exchange->send(0, static_cast<std::int64_t>(kSent));
          exchange->finish();
          if (endpoint.rank() == 0 && i > 0) seconds.push_back(since_s(start));
        }
      });
  return static_cast<double>(kSent) / median_of(seconds);
}

/// Result of a probe; 0 if the machine lacks memory or threads for it.
double if_there_is_room(const std::function<double()>& probe) {
  try {
    return probe();
  } catch (const job::Exhausted&) {
    return 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace

double copy_bandwidth(int threads, std::size_t bytes, int repetitions) {
  const std::vector<double> seconds =
      time_together(threads, repetitions, [bytes] { return copying(bytes); });
  return 2.0 * static_cast<double>(bytes) * threads / median_of(seconds);
}

costs::Probes run_probes(const ProbeOptions& options) {
  costs::Probes reached;
  if (options.kernels) {
    reached.copy =
        if_there_is_room([] { return copy_bandwidth(probing_threads(), kCopied, kRepetitions); });
    reached.codec = if_there_is_room(encode_bandwidth);
  }
  if (!options.transport.empty())
    reached.transport = if_there_is_room([&] { return transport_bandwidth(options); });
  return reached;
}

costs::Probes run_probes(const ProbeOptions& options, transport::Endpoint& endpoint) {
  return job::gather(endpoint, endpoint.rank() == 0 ? run_probes(options) : costs::Probes{})
      .front();
}

}  // namespace hipress::replay
