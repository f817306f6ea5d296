#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hipress::costs {

/// GPUs of a collective; each host has the same number.
struct Ranks {
  std::uint32_t hosts = 1;
  std::uint32_t gpus = 1;  ///< total number on all hosts
  /// Bandwidth of all cards of a host in bytes per second, and latency between hosts; unset: the
  /// machine's.
  std::optional<double> host_bandwidth = {}, latency_s = {};
  std::uint32_t per_host() const { return gpus / hosts; }
};

/// Operations of a library. Their bytes are counted as in nccl-tests: all shards together for an
/// all-gather and a reduce-scatter, one rank's buffer for all others.
enum class Operation : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
};

/// One way to carry out an operation, and its two times.
struct CollectiveWay {
  std::string_view algorithm;  ///< "ring", "tree", "nvls", "nvls_tree", "p2p", "halving_doubling"
  std::string_view protocol;   ///< "LL", "LL128", "Simple"; "TCP" for Gloo
  double planned_s = 0;        ///< the library's own estimate; 0 for Gloo, which has none
  double seconds = 0;          ///< estimate of this model
  /// Shares of `seconds` during which the bytes keep busy a GPU's port into the fabric (within),
  /// and the GPU's part of its host's cards (between).
  double within = 0, between = 0;
};

}  // namespace hipress::costs
