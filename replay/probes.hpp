#pragma once

#include <functional>
#include <string>

#include "costs/spread.hpp"
#include "transport/endpoint.hpp"

namespace hipress::replay {

/// Which probes are run.
struct ProbeOptions {
  bool kernels = true;  ///< copy and codec; not where a GPU codes, of which they say nothing
  /// Transport between two threads of this process; empty: not probed.
  std::string transport{transport::kDefaultTransport};
  /// After which a rank gives up the other: short, since one that lacks memory never comes.
  double timeout_s = 5;
};

/// Runs a fixed piece of work for less than half a second: copies of more memory than caches hold,
/// onebit's encode, and bytes from one rank to another and back. Medians of a few repetitions. A
/// probe is 0 if it was not asked for, or if the machine has no room for it.
costs::Probes run_probes(const ProbeOptions& options);

/// The probes of rank 0, for all ranks of a job: ranks that probe at once would slow each other
/// down. Collective; the others wait.
costs::Probes run_probes(const ProbeOptions& options, transport::Endpoint& endpoint);

/// Bytes per second that so many threads copy together, reads and writes counted. Each thread has
/// two buffers of `bytes`, and copies one to the other `repetitions` times. All threads begin at
/// once.
double copy_bandwidth(int threads, std::size_t bytes, int repetitions);

}  // namespace hipress::replay
