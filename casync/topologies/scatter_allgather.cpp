#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "casync/partition.hpp"
#include "casync/topologies/rows.hpp"

namespace hipress::casync {
namespace {

/// One cycle of van de Geijn's broadcast of N pieces, each with a home node. The root sends each
/// piece to its home, in the order of distance, the farthest first. Then each piece travels around
/// the ring, from its home to the node before it. The root, which has all pieces, receives none.
///
/// The root's messages are chained. After the scatter it sends into the ring its own piece, then
/// those of homes N-1, N-2, … 2 from the root, in a ring's order. So no two nodes send to a third
/// at once, and a cycle takes the time of 2(N-1) messages of one piece.
class Cycle {
 public:
  Cycle(GraphBuilder& builder, const UnitWork& work, std::int64_t first, TaskId& last_sent)
      : builder_(builder), work_(work), nodes_(builder.nodes()), last_sent_(last_sent) {
    for (std::int64_t k = first; k < std::min<std::int64_t>(first + nodes_, work.partitions); ++k) {
      pieces_.emplace_back(builder, work, k);
      if (pieces_.back().empty()) pieces_.pop_back();
    }
  }

  void add() {
    std::vector<TaskId> message;  // per piece: its message on the root
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      TaskId source = work_.ready[work_.root];
      if (pieces_[piece].compressed()) {
        source = pieces_[piece].encode(work_.root, Role::kWorker, 0, source);
      }
      message.push_back(source);
    }
    std::vector<TaskId> at_home = message;
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      const std::uint32_t home = home_of(piece);
      if (home > 0) at_home[piece] = send_from_root(piece, home, message[piece]);
    }
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      TaskId passed = at_home[piece];
      for (std::uint32_t to = home_of(piece) + 1; home_of(piece) > 0 && to < nodes_; ++to) {
        passed = pieces_[piece].deliver(node(to - 1), node(to), passed);
      }
    }
    if (pieces_.size() == nodes_) go_around(nodes_ - 1, message.back());
    for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
      if (home_of(piece) > 1) go_around(piece, message[piece]);
    }
  }

 private:
  /// The home of a piece, counted from the root.
  std::uint32_t home_of(std::uint32_t piece) const { return nodes_ - 1 - piece; }
  std::uint32_t node(std::uint32_t place) const { return (work_.root + place) % nodes_; }

  TaskId send_from_root(std::uint32_t piece, std::uint32_t place, TaskId message) {
    const TaskId sending = builder_.size();
    const TaskId arrival = pieces_[piece].deliver(work_.root, node(place), message);
    if (last_sent_ != kNoIndex) builder_.edge(last_sent_, sending);
    last_sent_ = sending;
    return arrival;
  }

  /// Sends a piece around the ring from the root to the node before its home.
  void go_around(std::uint32_t piece, TaskId message) {
    const std::uint32_t end = home_of(piece) > 0 ? home_of(piece) : nodes_;
    TaskId passed = send_from_root(piece, 1, message);
    for (std::uint32_t to = 2; to < end; ++to) {
      passed = pieces_[piece].deliver(node(to - 1), node(to), passed);
    }
  }

  GraphBuilder& builder_;
  const UnitWork& work_;
  std::uint32_t nodes_;
  TaskId& last_sent_;  ///< the root's last Send
  std::vector<PartitionTasks> pieces_;
};

void expand(GraphBuilder& builder, const UnitWork& work) {
  if (builder.nodes() == 1) return;
  TaskId last_sent = kNoIndex;
  for (std::int64_t first = 0; first < work.partitions; first += builder.nodes()) {
    Cycle(builder, work, first, last_sent).add();
  }
}

double tasks_of_pieces(double nodes, bool compressed) {
  return nodes > 1 ? 2 * (nodes - 1) + (compressed ? nodes : 0) : 0;
}

/// Load of the root's egress. In each cycle of N pieces it sends N-2 pieces twice and two pieces
/// once.
double ports_of_root(const Slices& slices, const Wire& wire) {
  const double cycles = std::floor(static_cast<double>(slices.count) / wire.nodes);
  const double once = slices.total.port;
  const double again = std::max(0.0, cycles * (wire.nodes - 2)) * slices.last_load.port;
  return once + again;
}

double scattered(const Slices& slices, const Wire& wire) {
  const SliceCosts& last = slices.last;
  const double sent = last.encode + ports_of_root(slices, wire) - wire.burst + wire.latency;
  const double encoded = slices.total.encode + wire.hop(last) + wire.latency;
  return std::max(sent, encoded) + last.decode;
}

}  // namespace

const Topology kScatterAllGather = {
    .name = "scatter_allgather",
    .help = "broadcast: the root scatters pieces, which then travel around a ring (van de Geijn)",
    .expand = expand,
    .tasks_per_partition = tasks_of_pieces,
    .operation = Operation::kBroadcast,
    .spread = scattered,
};

}  // namespace hipress::casync
