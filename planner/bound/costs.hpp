#pragma once

#include <cstdint>
#include <vector>

#include "casync/plan.hpp"
#include "costs/cluster.hpp"
#include "costs/collectives.hpp"
#include "costs/curve.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/problem/machines.hpp"

/// What launches and messages cost at the least, whatever nodes and paths they are on: the leaves
/// of the lower bound (docs/bound.md). All times in picoseconds.
namespace hipress::planner {

inline constexpr double kPicosecondsPerSecond = 1e12;
/// More than the rounding of what is computed in double precision.
inline constexpr double kSlack = 1 - 1e-9;

double picoseconds(double seconds);

/// A + B·x.
struct Line {
  double a = 0;
  double b = 0;
};

/// What a curve costs at least.
class LeastCost {
 public:
  LeastCost() = default;
  /// Of a launch cut among `gpus`, on a node of speed `fastest`; `rounds_by_speed`: speeds differ
  /// from 1, so that the simulator rounds what they make of a time.
  LeastCost(costs::Curve curve, std::uint32_t gpus, double fastest, bool rounds_by_speed);

  /// One launch for x elements, or for more.
  double of(std::int64_t x) const;
  /// The same of x elements in a launch for any more, of which each other counts with line().b.
  double of_part(std::int64_t x) const;
  /// A line that no launch is below: B is the least cost per element.
  const Line& line() const { return line_; }

 private:
  void find_line();
  double slow(double nominal) const;

  costs::Curve curve_;
  std::int64_t gpus_ = 1;
  double fastest_ = 1;
  bool rounds_by_speed_ = false;
  Line line_;
};

/// What a stage of a codec, which takes `seconds` at speed 1, takes at the least on a node of speed
/// `fastest`.
double least_stage(double seconds, double fastest, bool rounds_by_speed);

/// The costs of what is sent in one way: raw or with one algorithm.
struct Form {
  const casync::Algorithm* algorithm = nullptr;  ///< null: raw
  LeastCost encode, decode, add;                 ///< raw: only add, a Merge
  double bytes_per_element = 0;                  ///< of large messages, and no message has less

  std::int64_t bytes(std::int64_t elements) const;
};

/// What is sent raw, and with each of the algorithms, costs at the least; of stages, and so of
/// factors, nothing is said. The algorithms must outlive it. InputError if the profile lacks one.
std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready);

/// How the simulated network limits a port: work on it from `start` on is over at `start` +
/// `factor` × (work − `credit`) at the earliest.
struct PortLimit {
  double factor = 1;  ///< more where both directions together carry less than twice one
  double credit = 0;  ///< picoseconds that a burst lets through at once
};
PortLimit port_limit(const Machines& machines);

/// A library's all-reduce among the nodes of a cluster.
class LeastAllReduce {
 public:
  explicit LeastAllReduce(const Machines& machines);

  double time(std::int64_t bytes) const;
  /// A line that no all-reduce of any size is below.
  Line line() const;

 private:
  const Machines& machines_;
  const costs::AllReduceCosts costs_;
  const costs::LinkCosts ring_;
  const std::uint32_t nodes_;
};

/// What messages cost at least on any path of the cluster.
class LeastMessage {
 public:
  explicit LeastMessage(const Machines& machines);

  /// The time that it takes alone, o + bytes/B.
  double time(std::int64_t bytes) const;
  /// What it takes of a port.
  double work(std::int64_t bytes) const;
  /// What it takes of a port besides its bytes, and per byte.
  Line line() const;
  /// What a message from one host to another takes of the port that the host's nodes share, the
  /// same way.
  const Line& between_hosts() const { return between_hosts_; }
  double latency() const { return latency_; }
  /// Work that a port lets through at once.
  double burst() const { return burst_; }

 private:
  std::vector<costs::LinkCosts> paths_;
  double latency_ = 0;
  double share_ = 1;
  bool whole_is_on_port_ = true;
  double fastest_link_ = 0;
  double burst_ = 0;
  Line between_hosts_;
};

}  // namespace hipress::planner
