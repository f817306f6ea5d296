#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "costs/machine.hpp"

namespace hipress::costs {

/// The GPUs that take part in a collective: equally many on each host.
struct Ranks {
  std::uint32_t hosts = 1;
  std::uint32_t gpus = 1;  ///< of all hosts together
  /// Bytes per second of all cards of a host, and latency between hosts; none: the machine's.
  std::optional<double> host_bandwidth = {}, latency_s = {};
  std::uint32_t per_host() const { return gpus / hosts; }
};

/// Operations of a library. Their `bytes` are as nccl-tests count them: what a rank has of an
/// all-reduce, a broadcast or an all-to-all, all shards together of the other two.
enum class Operation : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
};

/// One way to carry out an operation, and its two times.
struct CollectiveWay {
  std::string_view algorithm;  ///< "ring", "tree", "nvls", "nvls_tree", "p2p"
  std::string_view protocol;   ///< "LL", "LL128", "Simple"
  double planned_s = 0;        ///< as the library estimates it
  double seconds = 0;          ///< as this model does
};

/// The ways that NCCL has on those GPUs, each with
///  - `planned_s`, by NCCL's own tuning model (its formulas and constants: src/graph/tuning.cc of
///    NCCL 2.27 and 2.19), on which its choice rests;
///  - `seconds` = launch + steps · latency + bytes / rate + fill. The rate is that of the link
///  which
///    is busy longest: NVLink, or the cards that the GPUs of a host share, as one ring a rail. The
///    fill is that of the pipeline between hosts. docs/collectives.md has the constants.
/// std::invalid_argument where hosts do not have equally many GPUs.
std::vector<CollectiveWay> collective_ways(const Machine& machine, Ranks ranks, Operation operation,
                                           double bytes);

/// The way that NCCL takes: the least `planned_s`. `algorithm` and `protocol` force one, as
/// NCCL_ALGO and NCCL_PROTO do; empty: any. InputError if no way has them.
CollectiveWay collective_time(const Machine& machine, Ranks ranks, Operation operation,
                              double bytes, std::string_view algorithm = {},
                              std::string_view protocol = {});

/// Bytes per second that a GPU sends in a ring through that many GPUs of its host; 0: it is alone
/// there.
double ring_bandwidth(const Machine& machine, std::uint32_t gpus_of_host);

/// "all_reduce", as in tables of published measurements. InputError lists the others.
Operation operation_named(std::string_view name);

}  // namespace hipress::costs
