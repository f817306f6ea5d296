#include "tests/transport/ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

namespace hipress::transport::test {

std::string fresh_rendezvous() {
  static std::atomic<int> next = 0;
  return fmt::format("local:test-{}", next++);
}

JobOptions thread_job(int size, double timeout_s) {
  JobOptions job;
  job.size = size;
  job.job = "transport test";
  job.plan = "none";
  job.rendezvous = fresh_rendezvous();
  job.timeout_s = timeout_s;
  job.silence_s = timeout_s / 2;
  return job;
}

std::vector<Outcome> run_ranks(int size, const std::function<void(int rank)>& rank_main) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      try {
        rank_main(rank);
      } catch (const PeerError& error) {
        outcome.peer_error = error;
      } catch (const std::exception& error) {
        outcome.other_error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Outcome> run_job(const std::string& transport, const JobOptions& job,
                             const std::function<void(Endpoint&)>& rank_main) {
  return run_ranks(job.size, [&](int rank) {
    JobOptions mine = job;
    mine.rank = rank;
    const auto endpoint = find_transport(transport).connect(mine);
    rank_main(*endpoint);
  });
}

std::string errors(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Outcome& outcome = outcomes[rank];
    if (outcome.peer_error) text += fmt::format("rank {}: {}\n", rank, outcome.peer_error->what());
    if (!outcome.other_error.empty())
      text += fmt::format("rank {}: {}\n", rank, outcome.other_error);
  }
  return text;
}

std::byte pattern(int from, int to, std::uint32_t tag, std::uint64_t iteration, std::size_t i) {
  const std::size_t mixed = static_cast<std::size_t>(from) * 41 +
                            static_cast<std::size_t>(to) * 59 + tag * 73 + iteration * 101 + i * 7 +
                            (i >> 8) * 13;
  return static_cast<std::byte>(mixed & 0xFF);
}

Traffic::Traffic(Endpoint& endpoint, std::vector<std::size_t> bytes)
    : endpoint_(endpoint), arrived_(static_cast<std::size_t>(endpoint.size())) {
  for (int peer = 0; peer < endpoint.size(); ++peer) {
    if (peer == endpoint.rank()) continue;
    for (std::uint32_t tag = 0; tag < bytes.size(); ++tag) {
      outgoing_.push_back({peer, tag, std::vector<std::byte>(bytes[tag])});
      incoming_.push_back({peer, tag, std::vector<std::byte>(bytes[tag])});
    }
  }
  // A tag identifies a message at its receiver, so it must differ between senders.
  const auto tag_at = [&](int from, std::uint32_t tag) {
    return static_cast<std::uint32_t>(from) * 1000 + tag;
  };
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (const Message& m : outgoing_)
    outgoing.push_back({m.peer, tag_at(endpoint.rank(), m.tag), m.bytes});
  for (Message& m : incoming_) incoming.push_back({m.peer, tag_at(m.peer, m.tag), m.bytes});
  exchange_ = endpoint.prepare(
      outgoing, incoming,
      {.arrived = [this](std::uint32_t tag, std::int64_t,
                         Clock::time_point) { arrived_[tag / 1000].push_back(tag % 1000); },
       .failed = {}});
}

void Traffic::begin(std::uint64_t iteration) {
  iteration_ = iteration;
  for (Message& m : outgoing_) {
    for (std::size_t i = 0; i < m.bytes.size(); ++i) {
      m.bytes[i] = pattern(endpoint_.rank(), m.peer, m.tag, iteration, i);
    }
  }
  if (!std::exchange(posted_, false)) forget_arrived();
  exchange_->begin(iteration);
}

void Traffic::forget_arrived() {
  for (Message& m : incoming_) std::ranges::fill(m.bytes, std::byte{0xEE});
  for (auto& tags : arrived_) tags.clear();
}

void Traffic::post() {
  forget_arrived();
  posted_ = true;
  exchange_->post();
}

void Traffic::send(std::size_t index) {
  exchange_->send(index, static_cast<std::int64_t>(outgoing_[index].bytes.size()));
}

void Traffic::finish() {
  exchange_->finish();
  for (const Message& m : incoming_) {
    for (std::size_t i = 0; i < m.bytes.size(); ++i) {
      if (m.bytes[i] == pattern(m.peer, endpoint_.rank(), m.tag, iteration_, i)) continue;
      throw std::runtime_error(fmt::format("iteration {}: byte {} of tag {} from rank {} is wrong",
                                           iteration_, i, m.tag, m.peer));
    }
  }
}

void Traffic::run(std::uint64_t iteration, unsigned seed) {
  begin(iteration);
  std::vector<std::size_t> order(messages());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (const std::size_t index : order) send(index);
  finish();
}

const std::vector<std::uint32_t>& Traffic::arrived(int peer) const {
  return arrived_[static_cast<std::size_t>(peer)];
}

}  // namespace hipress::transport::test
