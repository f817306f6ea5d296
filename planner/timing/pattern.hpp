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

/// Patterns: what a planner's simulations are put together from.
///
/// A plan changes in one gradient from one candidate to the next, so expanding a whole graph for
/// each is mostly repetition. A *pattern* is the tasks of one unit (a gradient or bulk group) of
/// some size, algorithm, K and topology, without computation, with their work in picoseconds; it is
/// made once and used wherever such a unit occurs. It has the tasks of the unit's factors, too.
namespace hipress::planner {

using casync::Factors;
using casync::FactorSums;
using casync::Resource;

/// One task of a pattern. Steps are sorted by their place in the unit (sim/service_order.hpp).
struct Step {
  std::int64_t work = 0;         ///< ps that it occupies its resource
  std::int64_t delay = 0;        ///< ps from then until its successors may start (the wire)
  std::uint32_t successors = 0;  ///< index into Pattern::successors of the first; the next step's
                                 ///< ends them
  std::uint32_t node = 0;        ///< before the unit's peer_offset
  std::uint32_t shift = 0;       ///< (receiver - sender) mod N
  Resource resource = Resource::kCodec;  ///< serial: a stream, a link, or both ports of a message
  casync::Kind kind = casync::Kind::kJoin;  ///< of the task; kJoin: of no one task
  std::uint8_t factor = 0;  ///< 1 + the stage of the factor that it moves; 0: of the unit itself
};

struct Pattern {
  std::vector<Step> steps;           ///< and one more, which ends the successors of the last
  std::vector<std::uint16_t> waits;  ///< per step: the number of steps that must be done before
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> sources;  ///< steps that wait for none
  std::int64_t codec_work = 0;         ///< ps, of all steps on codec streams, all nodes together
  std::int64_t port_work = 0;
  double longest = 0;  ///< ps of all work and delays one after the other
  /// Per all-reduce, one or by stage, the AllReduce of the first node; those of the others follow
  /// it. Each waits for its node's one that comes before it in casync::collective_order().
  std::vector<std::uint32_t> collectives = {};
  /// PlacedUnit::carried in the graph that it was made of, whose one gradient is 0.
  std::uint32_t carried = 0;
  std::uint32_t factors = 0;  ///< that stand for the unit

  bool is_collective() const { return !collectives.empty(); }
  /// Which node serves a partition depends on the gradient alone: of factors it depends on how many
  /// those of the gradients before it have.
  bool has_own_servers() const { return factors == 0; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(waits.size()); }
  std::size_t bytes() const {
    return steps.capacity() * sizeof(Step) + waits.capacity() * sizeof(waits[0]) +
           (successors.capacity() + sources.capacity()) * sizeof(sources[0]);
  }
};

/// How closely a pattern describes its unit.
enum class Fidelity : std::uint8_t {
  /// One node's mean share in a few chunks, whatever N and K: cheap, and wrong by as much as a
  /// chunk
  /// is longer than a message, or as nodes differ.
  kCoarse,
  kFolded,  ///< one node's share task by task, as casync::Folding::kFolded
  kWhole,   ///< every node's tasks
};

/// What a pattern depends on beside the machines.
struct PatternKey {
  std::int64_t elements = 0;
  std::int32_t partitions = 1;
  std::int8_t algorithm = casync::kRaw;
  const casync::Topology* topology = nullptr;
  Fidelity fidelity = Fidelity::kCoarse;
  Factors factors = {};  ///< that stand for the unit; `topology` is theirs

  auto tie() const {
    return std::tie(elements, partitions, algorithm, topology, fidelity, factors);
  }
  bool operator<(const PatternKey& other) const { return tie() < other.tie(); }
};

/// io::InputError unless that many picoseconds, one after the other, are a time that 64 bits hold
/// together with those of any other schedule.
void require_countable(double picoseconds);

/// sim::Works of all nodes alike: those of the slowest, and of messages on one path, where paths
/// differ that of most.
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

/// Makes patterns and keeps them.
class PatternBook {
 public:
  /// InputError if the profile lacks one of the algorithms. The arguments must outlive it.
  PatternBook(const std::vector<casync::Algorithm>& algorithms, const Machines& machines);
  PatternBook(const PatternBook&) = delete;
  PatternBook& operator=(const PatternBook&) = delete;

  /// The same pattern for equal keys. Not to be called by two threads at once; what it returned
  /// stays valid until trim(). InputError as sim::Works for a step that takes too long,
  /// and as require_countable() for all of them.
  const Pattern& find(const PatternKey& key);

  const UnitWorks& works() const { return works_; }

  /// Asked before each pattern that is not coarse is made: true throws sim::Stopped.
  void set_stop(std::function<bool()> stop) { stop_ = std::move(stop); }

  /// Forgets all patterns if they take more than `most_bytes`; whether it did.
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
