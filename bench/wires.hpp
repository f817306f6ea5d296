#pragma once

#include <string>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::bench {

/// What a transport costs and how fast it is, of one job, median over the rounds.
struct WireFigures {
  double cpu_ns_per_byte = 0;      ///< core time of both ends, of 1 MiB messages between all ranks
  double cpu_us_per_message = 0;   ///< the same of 64-byte messages
  double latency_us = 0;           ///< half of the time that 64 bytes take there and back
  double all_reduce_mb_per_s = 0;  ///< 10^6 bytes of values summed, per second
  double all_reduce_cpu_ns_per_byte = 0;  ///< core time of all ranks, per byte of values of one
};

/// How much is sent.
struct WireLoad {
  int rounds = 5;
  double megabytes = 64;  ///< 2^20 bytes, from each rank to each other one
  int messages = 5000;    ///< small ones, from each rank to each other one
  int trips = 1000;       ///< there and back
};

/// Takes the figures of every named transport among `ranks` threads over loopback, the transports
/// in turns, so that all meet the same machine. What arrives is verified once, before anything is
/// timed. In the order of the names.
std::vector<WireFigures> measure_wires(const std::vector<std::string>& transports, int ranks,
                                       const WireLoad& load);

}  // namespace hipress::bench
