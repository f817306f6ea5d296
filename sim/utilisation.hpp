#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario.hpp"

namespace hipress::sim {

/// One direction of a node's link.
struct LinkUse {
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
  double utilisation = 0;  ///< share of what it could have carried during the iteration: the sum of
                           ///< o + bytes/B over its messages, over the iteration time
  double busy = 0;  ///< share of the iteration during which some message was under way; more than
                    ///< `utilisation` where messages go slower than the link would let them
};

/// What a node's resources did: shares of the iteration time, 0 to 1.
struct NodeUse {
  double compute = 0;  ///< its compute stream ran a task
  double codec = 0;    ///< its codec stream ran a task
  double local = 0;    ///< its GPUs exchanged
  LinkUse egress, ingress;
  double both_ways = 0;  ///< both directions of its link, of what they can carry together; their
                         ///< mean on a full-duplex link, and under `port`, which knows no other
};

/// A link that the nodes of a host or a rack share.
struct SharedLinkUse {
  LinkUse out, in;
  double both_ways = 0;  ///< as of a node's link
};

/// Cores that nodes on one host share.
struct HostUse {
  std::uint32_t host = 0;
  double utilisation = 0;  ///< core-seconds of computation that
                           ///< says its threads, codec tasks and transfers, over cores × iteration
};

struct Utilisation {
  std::vector<NodeUse> nodes;
  std::vector<SharedLinkUse> host_links;  ///< per host; none without a host link: then every node
                                          ///< has a link of its own, else one to its host's others
  std::vector<SharedLinkUse> rack_links;  ///< per rack; none without racks
  std::vector<HostUse> hosts;  ///< in order of their number; none where cores are not shared
};

/// What every resource did in the iteration that was simulated; all zero for an iteration of no
/// length. `graph` and `result` are the scenario's; `result` must have its timeline
/// (std::invalid_argument for another timeline).
Utilisation utilisation(const Scenario& scenario, const casync::TaskGraph& graph,
                        const Result& result);

}  // namespace hipress::sim
