#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "casync/factors.hpp"
#include "casync/layout.hpp"
#include "casync/plan.hpp"
#include "costs/cluster.hpp"
#include "planner/problem/machines.hpp"
#include "sim/works.hpp"

/// Patterns: building blocks of the planner's simulations.
///
/// Most candidates of a search differ in only one gradient, so a whole graph for each would mostly
/// repeat the same tasks. A *pattern* holds the tasks of one unit (a gradient or bulk group) for
/// one size, algorithm, K and topology, with their work in picoseconds and the tasks of the unit's
/// factors. It contains no computation. It is made once, and reused wherever such a unit occurs.
namespace hipress::planner {

using casync::Factors;
using casync::FactorSums;
using casync::Resource;

/// One task of a pattern. Steps are sorted by their place in the unit (sim/service_order.hpp).
struct Step {
  std::int64_t work = 0;   ///< ps on its resource
  std::int64_t delay = 0;  ///< ps from its end until its successors may start (the wire)
  /// Offset of the first successor in Pattern::successors; the next step's offset ends the list.
  std::uint32_t successors = 0;
  std::uint32_t node = 0;   ///< node, before PlacedUnit::rotation() is added
  std::uint32_t shift = 0;  ///< (receiver - sender) mod N
  /// Resource that the step occupies: its node's codec stream, the link between the node's GPUs, or
  /// two ports, its node's egress and the receiver's ingress.
  Resource resource = Resource::kCodec;
  /// Kind of the task; kJoin: it stands for several tasks.
  casync::Kind kind = casync::Kind::kJoin;
  /// 1 + the stage of the factor that it moves; 0: it moves the unit itself.
  std::uint8_t factor = 0;
};

struct Pattern {
  /// The steps, then a sentinel that ends the successors of the last one.
  std::vector<Step> steps;
  std::vector<std::uint16_t> waits;  ///< per step: number of predecessors
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> sources;  ///< steps without predecessors
  std::int64_t codec_work = 0;         ///< ps on codec streams, summed over the steps of all nodes
  std::int64_t port_work = 0;
  double longest = 0;  ///< ps of all work and delays if nothing overlapped
  /// Per all-reduce of the unit (one, or one per stage): the first node's AllReduce step, followed
  /// by those of the other nodes. Each waits for its node's previous one
  /// (casync::collective_order()).
  std::vector<std::uint32_t> collectives = {};
  /// PlacedUnit::carried in the graph from which the pattern was made. The unit has index 0 there.
  std::uint32_t carried = 0;
  std::uint32_t factors = 0;  ///< number of factors that are sent for the unit

  bool is_collective() const { return !collectives.empty(); }
  /// True if the gradient's index alone decides which nodes serve its partitions. With factors, the
  /// number of factors of earlier gradients matters, too.
  bool has_own_servers() const { return factors == 0; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(waits.size()); }
  std::size_t bytes() const {
    return steps.capacity() * sizeof(Step) + waits.capacity() * sizeof(waits[0]) +
           (successors.capacity() + sources.capacity()) * sizeof(sources[0]);
  }
};

/// Level of detail of a pattern.
enum class Fidelity : std::uint8_t {
  /// Share of an average node, in a few chunks, whatever N and K are. Cheap. Its errors come from
  /// chunks that are longer than messages, and from differences between nodes.
  kCoarse,
  kFolded,  ///< tasks of one node, as in casync::Folding::kFolded
  kWhole,   ///< tasks of all nodes
};

/// All inputs of a pattern except the machines.
struct PatternKey {
  std::int64_t elements = 0;
  std::int32_t partitions = 1;
  std::int8_t algorithm = casync::kRaw;
  const casync::Topology* topology = nullptr;
  Fidelity fidelity = Fidelity::kCoarse;
  Factors factors = {};  ///< factors that are sent for the unit, by `topology`

  auto tie() const {
    return std::tie(elements, partitions, algorithm, topology, fidelity, factors);
  }
  bool operator<(const PatternKey& other) const { return tie() < other.tie(); }
};

/// Throws io::InputError if a duration exceeds 2^62 ps: sums of two must fit into 64 bits.
void require_countable(double picoseconds);

/// Durations of tasks (sim::Works) on identical nodes, all as slow as the slowest. If paths differ,
/// messages take the path of most pairs of nodes.
class UnitWorks {
 public:
  /// The arguments must outlive it.
  UnitWorks(const Machines& machines, const sim::TaskCosts& costs);
  std::int64_t of(const casync::Task& task, std::span<const casync::Factor> factors = {}) const {
    return works_.of(task, path_, speed_, factors);
  }
  std::int64_t latency() const { return works_.latency(path_); }

 private:
  sim::Works works_;
  costs::Path path_;
  double speed_;
};

/// Cache of patterns.
class PatternBook {
 public:
  /// Throws InputError if the profile lacks one of the algorithms. The arguments must outlive it.
  PatternBook(const std::vector<casync::Algorithm>& algorithms, const Machines& machines);
  PatternBook(const PatternBook&) = delete;
  PatternBook& operator=(const PatternBook&) = delete;

  /// Returns the pattern of the key; the first call makes it. Valid until trim(). Not thread-safe.
  /// Throws InputError as sim::Works does for a step that takes too long, and as
  /// require_countable() does for the sum of all steps.
  const Pattern& find(const PatternKey& key);

  const UnitWorks& works() const { return works_; }

  /// Sets a function that is polled before a fine pattern is made; true: find() throws Stopped.
  void set_stop(std::function<bool()> stop) { stop_ = std::move(stop); }

  /// Clears the cache if it takes more than `most_bytes`; returns true if it did.
  bool trim(std::size_t most_bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  const std::vector<casync::Algorithm>& algorithms_;
  const Machines& machines_;
  const sim::TaskCosts costs_;
  const UnitWorks works_;
  std::map<PatternKey, std::unique_ptr<const Pattern>> patterns_;
  std::size_t bytes_ = 0;
  std::function<bool()> stop_;
};

}  // namespace hipress::planner
