#pragma once

#include <cstdint>
#include <optional>

#include "casync/topology_model.hpp"

namespace hipress::planner {

using casync::Work;

/// The least that one option of one gradient costs, whatever the rest of the plan does; all times
/// in picoseconds. docs/bound.md derives every number.
struct OptionWork {
  Work port;              ///< of an egress (and of an ingress)
  Work codec;             ///< of a codec stream, at the fastest node's speed
  double local = 0;       ///< of the link between a node's GPUs
  double collective = 0;  ///< of the library's all-reduces, of which a node runs one at a time
  double host = 0;        ///< of a host's port, the mean over hosts; 0: hosts have none
  double end = 0;         ///< when the gradient can be synchronised at the earliest
  double port_head = 0;   ///< from the gradient's ready time to the first message
  double port_tail = 0;   ///< from the last message's leaving to the end
  double codec_head = 0;  ///< the same of what codec streams do, from the first node's ready
                          ///< time, since merges wait for messages
  double own_head = 0;    ///< to what codec streams do, from their own node's ready time
  double codec_tail = 0;
  std::uint32_t servers = 0;  ///< partitions that nodes g, g+1, … mod N serve; 0: `all` has it all
  std::uint16_t option = 0;   ///< index into Choices::gradients[g]
  /// In a bulk group, where a member's part is known: of each of the group's N slices.
  struct InGroup {
    casync::SliceCosts slice;  ///< what it takes at the least
    casync::SliceCosts share;  ///< this member's part of that, as work on resources
    casync::SliceCosts slope;  ///< of which this is what grows with its size
  };
  std::optional<InGroup> in_group = {};
};

}  // namespace hipress::planner
