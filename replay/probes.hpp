#pragma once

#include <functional>
#include <string>

#include "costs/spread.hpp"
#include "transport/endpoint.hpp"

namespace hipress::replay {

/// Selection of probes.
struct ProbeOptions {
  bool kernels = true;  ///< copies and codec; set to false if a GPU encodes
  /// Transport between two threads of this process; empty: not probed.
  std::string transport{transport::kDefaultTransport};
  /// Time for which either rank waits for the other; short, as one that lacks memory never comes.
  double timeout_s = 5;
};

/// Runs a fixed amount of work for less than half a second: copies of more memory than caches hold,
/// onebit's encode, and transfers between two ranks in both directions. Returns medians of a few
/// repetitions. A probe is 0 if it was not requested, or if the machine lacks memory or threads.
costs::Probes run_probes(const ProbeOptions& options);

/// Runs the probes on rank 0 alone and returns the results on all ranks: ranks that probe at the
/// same time would slow each other down. Collective; the other ranks wait.
costs::Probes run_probes(const ProbeOptions& options, transport::Endpoint& endpoint);

/// Memory bandwidth of copies by `threads` threads together, in bytes per second, with reads and
/// writes counted. Each thread has two buffers of `bytes`, and copies one to the other
/// `repetitions` times. All threads start at once.
double copy_bandwidth(int threads, std::size_t bytes, int repetitions);

}  // namespace hipress::replay
