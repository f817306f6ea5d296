#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// One direction of a node's link.
struct LinkUse {
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
  double utilisation = 0;  ///< sum of o + bytes/B of its messages, divided by the iteration time
  double busy = 0;         ///< share of the iteration in which a message was under way; exceeds
                           ///< `utilisation` if messages were slower than the link
};

/// Use of a node's resources: shares of the iteration time, 0 to 1.
struct NodeUse {
  double compute = 0;  ///< its compute stream
  double codec = 0;    ///< its codec stream
  double local = 0;    ///< the link between its GPUs
  LinkUse egress, ingress;
  double both_ways = 0;  ///< sum of both directions' use, divided by their joint capacity: 2 (so
                         ///< this is their mean) on a full-duplex link and with network `port`
};

/// Use of a link that the nodes of a host or a rack share.
struct SharedLinkUse {
  LinkUse out, in;
  double both_ways = 0;  ///< as in NodeUse
};

/// Use of the cores that nodes on one host share.
struct HostUse {
  std::uint32_t host = 0;
  double utilisation = 0;  ///< core-seconds of codec tasks, transfers and computation with a known
                           ///< number of threads, divided by cores × iteration time
};

struct Utilisation {
  std::vector<NodeUse> nodes;
  std::vector<SharedLinkUse> host_links;  ///< per host; empty without a host link
  std::vector<SharedLinkUse> rack_links;  ///< per rack; empty without racks
  std::vector<HostUse> hosts;             ///< by number; empty if cores are not shared
};

/// Use of every resource in a simulated iteration; all zero for an iteration of zero length.
/// `graph` and `result` belong to the scenario; `result` must have its timeline. Throws
/// std::invalid_argument for the timeline of a different graph.
Utilisation utilisation(const Scenario& scenario, const casync::TaskGraph& graph,
                        const Result& result);

}  // namespace hipress::sim
