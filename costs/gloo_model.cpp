#include "costs/gloo_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace hipress::costs {
namespace {

constexpr double kMicrosecond = 1e-6, kGigabyte = 1e9;

// Constants of this model. Units: microseconds and 10^9 bytes per second.

/// Time to start an operation, time of a message at both its ends, and latency within a host.
constexpr double kStart_us = 60, kMessage_us = 20, kLocal_us = 15;
/// Rate of one connection, which one thread serves, and rate at which a rank adds.
constexpr double kConnection = 2.5, kSum = 5;
/// Maximum size of a segment of a ring's chunk, and minimum number of segments per chunk.
constexpr double kSegmentBytes = 1 << 20, kLeastSegments = 2;

/// Hop of a message: latency in microseconds, rate in 10^9 bytes per second.
struct Hop {
  double latency_us, rate;
  double busy_us(double bytes) const { return kMessage_us + bytes / rate / 1e3; }
  double message_us(double bytes) const { return busy_us(bytes) + latency_us; }
};

struct GlooClock {
  const Machine& machine;
  Ranks ranks;
  double bytes;

  double n() const { return ranks.gpus; }
  bool spans_hosts() const { return ranks.hosts > 1; }
  double cards_gb() const {
    return ranks.host_bandwidth.value_or(machine.host_bandwidth()) / kGigabyte;
  }
  Hop within() const { return {kLocal_us, kConnection}; }
  /// Hop to another host while `senders` ranks of each host send. Each sends over one card.
  Hop between(double senders) const {
    const double card = cards_gb() / std::max<double>(machine.cards, 1);
    const double part = std::min(card, cards_gb() / senders);
    return {ranks.latency_s.value_or(machine.network_latency_s) / kMicrosecond,
            std::min(part, kConnection)};
  }

  /// Rounds of a ring. In each round, every rank sends one chunk to the next, in two or more
  /// segments, two of them at a time. If `sums`, the receiver adds the chunk to its own.
  double ring_us(double rounds, bool sums) const {
    const double chunk = bytes / n();
    const double segments = std::max(kLeastSegments, std::ceil(chunk / kSegmentBytes));
    const double segment = chunk / segments;
    const double sum_us = sums ? segment / kSum / 1e3 : 0;
    const double crossing = spans_hosts() ? rounds * (ranks.hosts - 1) / (n() - 1) : 0;
    const Hop slow = spans_hosts() ? between(1) : within();
    const double chain_us = crossing * (slow.message_us(segment) + sum_us) +
                            (rounds - crossing) * (within().message_us(segment) + sum_us);
    return std::max(chain_us * segments / 2, rounds * segments * slow.busy_us(segment));
  }

  /// Recursive halving with sums, then doubling if `gathers`, in the largest block of 2^k ranks.
  /// The other ranks form smaller blocks, which send it their sums and get the result back.
  double halving_us(bool gathers) const {
    const double times = gathers ? 2 : 1;
    const std::uint32_t block = std::bit_floor(ranks.gpus);
    double us = 0, part = bytes;
    for (std::uint32_t distance = 1; distance < block; distance *= 2) {
      part /= 2;
      const bool crosses = spans_hosts() && distance >= ranks.per_host();
      const Hop hop = crosses ? between(ranks.per_host()) : within();
      us += times * hop.message_us(part) + part / kSum / 1e3;
    }
    const Hop hop = spans_hosts() ? between(1) : within();
    for (std::uint32_t rest = ranks.gpus - block; rest > 0; rest -= std::bit_floor(rest)) {
      us += times * hop.message_us(bytes / std::bit_floor(rest));
    }
    return us;
  }

  /// Broadcast over a binomial tree.
  double tree_us() const {
    const double levels = std::bit_width(ranks.gpus - 1);
    const double crossing = std::bit_width(ranks.hosts - 1);
    const Hop slow = spans_hosts() ? between(1) : within();
    return crossing * slow.message_us(bytes) + (levels - crossing) * within().message_us(bytes);
  }

  double exchange_us() const {
    const Hop hop = spans_hosts() ? between(ranks.per_host()) : within();
    return (n() - 1) * hop.busy_us(bytes / n()) + hop.latency_us;
  }

  /// Way that takes `us` µs, in which each host sends `load` times the bytes to other hosts.
  CollectiveWay way(std::string_view algorithm, double us, double load) const {
    CollectiveWay made = {.algorithm = algorithm, .protocol = "TCP"};
    made.seconds = (kStart_us + us) * kMicrosecond;
    if (spans_hosts()) {
      made.between = std::min(1.0, load * bytes / (cards_gb() * kGigabyte) / made.seconds);
    }
    return made;
  }
};

}  // namespace

std::vector<CollectiveWay> gloo_ways(const Machine& machine, Ranks ranks, Operation operation,
                                     double bytes) {
  const GlooClock clock = {machine, ranks, bytes};
  const double n = ranks.gpus, each = ranks.per_host();
  const double sums_us = clock.ring_us(n - 1, true), copies_us = clock.ring_us(n - 1, false);
  const double passes = (n - 1) / n, leaves = (n - each) / n;
  switch (operation) {
    case Operation::kAllReduce:
      return {clock.way("ring", sums_us + copies_us, 2 * passes),
              clock.way("halving_doubling", clock.halving_us(true), 2 * leaves)};
    case Operation::kAllGather:
      return {clock.way("ring", copies_us, passes)};
    case Operation::kReduceScatter:
      return {clock.way("halving", clock.halving_us(false), leaves)};
    case Operation::kBroadcast:
      return {clock.way("tree", clock.tree_us(), 1)};
    case Operation::kAllToAll:
      return {clock.way("p2p", clock.exchange_us(), each * leaves)};
  }
  return {};
}

}  // namespace hipress::costs
