#pragma once

#include <string>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::bench {

/// Costs and speed of a transport: medians over the rounds of a job.
struct WireFigures {
  double cpu_ns_per_byte = 0;      ///< core time of sender and receiver, with messages of 1 MiB
  double cpu_us_per_message = 0;   ///< core time of sender and receiver, with messages of 64 bytes
  double latency_us = 0;           ///< half of a round trip of 64 bytes between ranks 0 and 1
  double all_reduce_mb_per_s = 0;  ///< 10^6 bytes of one rank's values per second
  double all_reduce_cpu_ns_per_byte = 0;  ///< core time of all ranks, per byte of one rank's values
};

/// Numbers and sizes of messages.
struct WireLoad {
  int rounds = 5;
  double megabytes = 64;  ///< units of 2^20 bytes, from each rank to every other rank
  int messages = 5000;    ///< messages of 64 bytes, from each rank to every other rank
  int trips = 1000;       ///< round trips
};

/// Measures every named transport between `ranks` threads over loopback. Transports take turns, so
/// that the state of the machine affects all alike. Received data is verified once, before the
/// first measurement. Returns results in the order of the names.
std::vector<WireFigures> measure_wires(const std::vector<std::string>& transports, int ranks,
                                       const WireLoad& load);

}  // namespace hipress::bench
