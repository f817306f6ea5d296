#pragma once

#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Links between the ranks of a job, as measured by its own messages.
struct Links {
  double bandwidth = 0;  ///< bytes per second of a rank that sends and receives at once
  double latency_s = 0;  ///< time of a small message between two ranks
};

/// Measures the links by bursts of uncompressed all-reduces around a ring, mostly in less than a
/// tenth of a second. Collective: all ranks call it together, between iterations, and get the same
/// result. At least two ranks. `timeout_s`: time without progress after which the job ends. Throws
/// std::invalid_argument for one rank, transport::PeerError if a rank is lost.
Links measure_links(transport::Endpoint& endpoint, double timeout_s);

}  // namespace hipress::runtime
