#pragma once

#include <cstdint>
#include <optional>

#include "casync/topology_model.hpp"

namespace hipress::planner {

using casync::Work;

/// Lower bounds on the costs of one option of one gradient. They hold whatever the rest of the plan
/// is. All times are in picoseconds; docs/bound.md derives every number.
struct OptionWork {
  Work port;              ///< work on an egress, and on an ingress
  Work codec;             ///< work on a codec stream, at the fastest node's speed
  double local = 0;       ///< time of its transfers on the link between a node's GPUs
  double collective = 0;  ///< time in the library's all-reduces, which a node runs one at a time
  double host = 0;  ///< work on the port that a host's nodes share, averaged over hosts; 0: hosts
                    ///< have no such port
  double end = 0;   ///< earliest end of the synchronisation
  double port_head = 0;  ///< time from the gradient's ready time to the first message
  double port_tail = 0;  ///< time from the departure of the last message to the end
  /// Time from the first node's ready time to the first codec work. A Merge waits for a message.
  double codec_head = 0;
  double own_head = 0;  ///< time from the node's own ready time to its first codec work
  double codec_tail = 0;
  std::uint32_t servers = 0;  ///< number of partitions, which nodes g, g+1, … mod N serve in turn;
                              ///< 0: Work::all has the whole load
  std::uint16_t option = 0;  ///< index into Choices::gradients[g]
  /// Lower bounds for each of a bulk group's N slices, if this member's part is known.
  struct InGroup {
    casync::SliceCosts slice;  ///< costs of the slice
    casync::SliceCosts share;  ///< this member's part of these costs, as work on resources
    casync::SliceCosts slope;  ///< part of `share` that is proportional to the member's size
  };
  std::optional<InGroup> in_group = {};
};

}  // namespace hipress::planner
