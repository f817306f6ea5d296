#pragma once

#include <cstdint>
#include <vector>

#include "costs/cluster.hpp"

namespace hipress::sim {

/// Delays of threads that move messages on hosts where other threads occupy all cores.
///
/// A thread that encodes, decodes or computes keeps its core for a turn
/// (costs::Cluster::core_turn_s) before other threads may use it. With k such threads on c <= k
/// cores, a message's thread that becomes ready waits (k/c - 1/2) turns on average: half a turn
/// until the thread on the core leaves, and a turn for each of the k/c - 1 threads ahead in the
/// core's queue. If a core is free, it does not wait.
///
/// A message needs a core three times: for the sending thread, then on the other host for the
/// library's loop and for the thread that receives from this peer. Messages that become ready at an
/// end of a node while a thread waits there continue together with it.
class Turns {
 public:
  explicit Turns(const costs::Cluster& cluster);
  /// True if turns have a length. Otherwise threads never wait.
  bool matter() const { return turn_s_ > 0; }

  /// Count a node's threads that keep a core.
  void occupy(std::uint32_t node, std::uint32_t threads) { busy_[host_[node]] += threads; }
  void release(std::uint32_t node, std::uint32_t threads) { busy_[host_[node]] -= threads; }

  enum class End : std::uint8_t { kSending, kReceiving };
  /// Time at which a message, ready at that end of `node` at `now`, gets its core.
  std::int64_t take(std::uint32_t node, End end, std::int64_t now);

 private:
  double turn_s_;
  double cores_;
  std::vector<std::uint32_t> host_;    // by node
  std::vector<std::uint32_t> busy_;    // by host: number of threads that keep a core
  std::vector<std::int64_t> granted_;  // by node and end: when waiting threads get their core
};

}  // namespace hipress::sim
