#include "bench/wires.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/report.hpp"
#include "io/error.hpp"
#include "job/clock.hpp"

namespace hipress::bench {
namespace {

using transport::Clock;
using transport::Endpoint;

constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
constexpr std::size_t kSmallBytes = 64;
constexpr std::size_t kValues = std::size_t{1} << 22;  ///< elements of an all-reduce

double process_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::byte byte_of(int from, std::size_t message, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(from) * 31 + message * 7 + i * 13 +
                                i / 256);
}

/// Exchange of messages of one size, which each rank sends to every other rank at once.
class AllToAll {
 public:
  AllToAll(Endpoint& endpoint, std::size_t bytes, int messages)
      : endpoint_(endpoint), bytes_(bytes), messages_(static_cast<std::size_t>(messages)) {
    const auto ranks = static_cast<std::size_t>(endpoint.size());
    source_.resize(bytes * messages_);
    destination_.resize(bytes * messages_ * ranks);
    for (std::size_t at = 0; at < source_.size(); ++at) {
      source_[at] = byte_of(endpoint.rank(), at / bytes, at % bytes);
    }
    std::vector<transport::Outgoing> outgoing;
    std::vector<transport::Incoming> incoming;
    for (std::size_t message = 0; message < messages_; ++message) {
      for (int peer = 0; peer < endpoint.size(); ++peer) {
        if (peer == endpoint.rank()) continue;
        const auto tag = static_cast<std::uint32_t>(message);
        outgoing.push_back({peer, tag, std::span(source_).subspan(message * bytes, bytes)});
        incoming.push_back({peer, tag, received(peer, message)});
      }
    }
    to_send_ = outgoing.size();
    exchange_ =
        endpoint.prepare(std::move(outgoing), std::move(incoming), {.arrived = {}, .failed = {}});
  }

  void run(std::uint64_t iteration, job::CommonClock& clock) {
    exchange_->begin(iteration);
    std::this_thread::sleep_until(clock.agree_on_start());
    for (std::size_t i = 0; i < to_send_; ++i) {
      exchange_->send(i, static_cast<std::int64_t>(bytes_));
    }
    exchange_->finish();
  }

  void verify() const {
    for (int peer = 0; peer < endpoint_.size(); ++peer) {
      if (peer == endpoint_.rank()) continue;
      for (std::size_t message = 0; message < messages_; ++message) {
        const auto bytes = received(peer, message);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          if (bytes[i] != byte_of(peer, message, i)) {
            throw io::RunError("a message arrived with other bytes than were sent");
          }
        }
      }
    }
  }

 private:
  std::span<std::byte> received(int peer, std::size_t message) const {
    const auto place = static_cast<std::size_t>(peer) * messages_ + message;
    return std::span(destination_).subspan(place * bytes_, bytes_);
  }

  Endpoint& endpoint_;
  const std::size_t bytes_, messages_;
  std::vector<std::byte> source_;
  mutable std::vector<std::byte> destination_;
  std::size_t to_send_ = 0;
  std::unique_ptr<transport::Exchange> exchange_;
};

/// Exchange of a message of 64 bytes that goes from rank 0 to rank 1 and back repeatedly. Each
/// arrival triggers the next message.
class PingPong {
 public:
  PingPong(Endpoint& endpoint, int trips) : rank_(endpoint.rank()), trips_(trips) {
    std::vector<transport::Outgoing> outgoing;
    std::vector<transport::Incoming> incoming;
    if (rank_ < 2) {
      for (int trip = 0; trip < trips; ++trip) {
        const auto tag = static_cast<std::uint32_t>(trip);
        outgoing.push_back({1 - rank_, tag, bytes_});
        incoming.push_back({1 - rank_, tag, landing_});
      }
    }
    const auto arrived = [this](std::uint32_t tag, std::int64_t, Clock::time_point) {
      const std::size_t next = rank_ == 0 ? tag + 1 : tag;
      if (next < static_cast<std::size_t>(trips_)) exchange_->send(next, kSmallBytes);
    };
    exchange_ = endpoint.prepare(std::move(outgoing), std::move(incoming),
                                 {.arrived = arrived, .failed = {}});
  }

  double one_way_us(std::uint64_t iteration, job::CommonClock& clock) {
    exchange_->begin(iteration);
    std::this_thread::sleep_until(clock.agree_on_start());
    const double taken_s = seconds_of([&] {
      if (rank_ == 0) exchange_->send(0, kSmallBytes);
      exchange_->finish();
    });
    return 1e6 * taken_s / (2 * trips_);
  }

 private:
  const int rank_, trips_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kSmallBytes);
  std::vector<std::byte> landing_ = std::vector<std::byte>(kSmallBytes);
  std::unique_ptr<transport::Exchange> exchange_;
};

/// Results of rank 0, by round.
struct Samples {
  std::vector<double> byte_ns, message_us, latency_us, reduce_rate, reduce_ns;
};

/// A rank of one transport. All ranks run each round together.
class Rank {
 public:
  Rank(Endpoint& endpoint, const WireLoad& load)
      : endpoint_(endpoint),
        clock_(endpoint),
        large_(endpoint, kLargeBytes, std::max(1, static_cast<int>(load.megabytes))),
        small_(endpoint, kSmallBytes, load.messages),
        ping_pong_(endpoint, load.trips),
        collective_(endpoint.collective()),
        load_(load) {
    large_.run(0, clock_);
    small_.run(0, clock_);
    large_.verify();
    small_.verify();
    ping_pong_.one_way_us(0, clock_);
    verify_sum();
  }

  void run(std::uint64_t round, Samples& samples) {
    const double pairs = endpoint_.size() * (endpoint_.size() - 1);
    const double bytes =
        std::max(1, static_cast<int>(load_.megabytes)) * double{kLargeBytes} * pairs;
    samples.byte_ns.push_back(1e9 / bytes * cpu_s([&] { large_.run(round, clock_); }));
    samples.message_us.push_back(1e6 / (load_.messages * pairs) *
                                 cpu_s([&] { small_.run(round, clock_); }));
    samples.latency_us.push_back(ping_pong_.one_way_us(round, clock_));
    double taken_s = 0;
    const double reduce_cpu_s = cpu_s([&] {
      std::this_thread::sleep_until(clock_.agree_on_start());
      taken_s = seconds_of([&] { collective_->all_reduce(values_); });
    });
    samples.reduce_rate.push_back(1e-6 * kValues * sizeof(float) / taken_s);
    samples.reduce_ns.push_back(1e9 * reduce_cpu_s / (kValues * sizeof(float)));
  }

 private:
  /// Core time that the process, with all its ranks, spends until all have done the work.
  double cpu_s(const auto& work) {
    endpoint_.all_gather("begin");
    const double before = process_cpu_s();
    work();
    endpoint_.all_gather("end");
    return process_cpu_s() - before;
  }

  void verify_sum() {
    std::ranges::fill(values_, static_cast<float>(endpoint_.rank() + 1));
    collective_->all_reduce(values_);
    const auto sum = static_cast<float>(endpoint_.size() * (endpoint_.size() + 1) / 2);
    for (const float value : values_) {
      if (value != sum) throw io::RunError("an all-reduce gave another sum");
    }
    std::ranges::fill(values_, 0.0F);
  }

  Endpoint& endpoint_;
  job::CommonClock clock_;
  AllToAll large_, small_;
  PingPong ping_pong_;
  std::unique_ptr<transport::Collective> collective_;
  std::vector<float> values_ = std::vector<float>(kValues);
  const WireLoad load_;
};

/// All ranks of one transport. They wait for the transport's turn.
class Job {
 public:
  Job(const std::string& transport, int ranks, const WireLoad& load) {
    for (int rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back([this, transport, ranks, load, rank] {
        try {
          serve(transport, ranks, load, rank);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!error_) error_ = std::current_exception();
          changed_.notify_all();
        }
      });
    }
    take_turn();  // connects and verifies
  }
  ~Job() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      changed_.notify_all();
    }
    threads_.clear();  // joins the threads
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Lets all ranks run one round, and waits for them.
  void take_turn() {
    std::unique_lock lock(mutex_);
    ++turn_;
    done_ = 0;
    changed_.notify_all();
    changed_.wait(lock, [&] { return error_ || done_ == static_cast<int>(threads_.size()); });
    if (error_) std::rethrow_exception(error_);
  }

  const Samples& samples() const { return samples_; }

 private:
  void serve(const std::string& transport, int ranks, const WireLoad& load, int rank) {
    const auto endpoint = transport::find_transport(transport).connect(
        {.rank = rank,
         .size = ranks,
         .job = "bench_wires",
         .plan = {},
         .rendezvous = fmt::format("local:bench_wires_{}_{}", transport, ranks),
         .interface = {}});
    Rank mine(*endpoint, load);
    Samples unused;
    for (std::uint64_t turn = 1; wait_for(turn); ++turn) {
      if (turn > 1) mine.run(turn - 1, rank == 0 ? samples_ : unused);
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }
  bool wait_for(std::uint64_t turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || turn_ >= turn; });
    return !over_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t turn_ = 0;
  int done_ = 0;
  bool over_ = false;
  std::exception_ptr error_;
  Samples samples_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::vector<WireFigures> measure_wires(const std::vector<std::string>& transports, int ranks,
                                       const WireLoad& load) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (const std::string& name : transports)
    jobs.push_back(std::make_unique<Job>(name, ranks, load));
  for (int round = 0; round < load.rounds; ++round) {
    for (const auto& job : jobs) job->take_turn();
  }
  std::vector<WireFigures> figures;
  for (const auto& job : jobs) {
    const Samples& samples = job->samples();
    const auto median = [](const std::vector<double>& of) { return summarise(of).median_s; };
    figures.push_back({.cpu_ns_per_byte = median(samples.byte_ns),
                       .cpu_us_per_message = median(samples.message_us),
                       .latency_us = median(samples.latency_us),
                       .all_reduce_mb_per_s = median(samples.reduce_rate),
                       .all_reduce_cpu_ns_per_byte = median(samples.reduce_ns)});
  }
  return figures;
}

}  // namespace hipress::bench
