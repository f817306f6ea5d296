#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "casync/plan.hpp"
#include "costs/cluster.hpp"
#include "costs/collectives.hpp"
#include "costs/curve.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/problem/machines.hpp"

/// Lower bounds on the costs of launches and messages, over all nodes and paths: the leaves of the
/// lower bound (docs/bound.md). All times in picoseconds.
namespace hipress::planner {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kPicosecondsPerSecond = 1e12;
/// Factor below 1 that covers rounding errors of double precision.
inline constexpr double kSlack = 1 - 1e-9;

double picoseconds(double seconds);

/// A + B·x.
struct Line {
  double a = 0;
  double b = 0;
};

/// Lower bound of a cost curve.
class LeastCost {
 public:
  LeastCost() = default;
  /// `curve` is that of a launch, which is split among `gpus` GPUs on a node of speed `fastest`.
  /// `rounds_by_speed`: some speed differs from 1, so the simulator rounds times that it divides by
  /// a speed.
  LeastCost(costs::Curve curve, std::uint32_t gpus, double fastest, bool rounds_by_speed);

  /// Least cost of one launch for x elements or more.
  double of(std::int64_t x) const;
  /// Least cost of x elements within a larger launch, if each of its other elements costs line().b.
  double of_part(std::int64_t x) const;
  /// Line below all launches. B is the least cost per element.
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

/// Lower bound of a codec stage that takes `seconds` at speed 1, on a node of speed `fastest`, in
/// ps.
double least_stage(double seconds, double fastest, bool rounds_by_speed);

/// Costs of one form of messages: raw, or one algorithm.
struct Form {
  const casync::Algorithm* algorithm = nullptr;  ///< null: raw
  LeastCost encode, decode, add;                 ///< raw: only add, a Merge
  double bytes_per_element = 0;  ///< size of large messages per element; no message has less

  std::int64_t bytes(std::int64_t elements) const;
};

/// Lower bounds for raw messages and for each algorithm. Codec stages, and therefore factors, are
/// not covered. The algorithms must outlive the result. Throws InputError if the profile lacks an
/// algorithm.
std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready);

/// Limit of a simulated port: `work` that begins at `start` ends no earlier than `start` + `factor`
/// × (`work` − `credit`).
struct PortLimit {
  double factor = 1;  ///< above 1 if both directions together carry less than twice one
  double credit = 0;  ///< ps of work that a burst lets through at once
};
PortLimit port_limit(const Machines& machines);

/// Lower bound of a library's all-reduce among the nodes of a cluster.
class LeastAllReduce {
 public:
  explicit LeastAllReduce(const Machines& machines);

  double time(std::int64_t bytes) const;
  /// Line below the all-reduces of all sizes.
  Line line() const;

 private:
  const Machines& machines_;
  const costs::AllReduceCosts costs_;
  const costs::LinkCosts ring_;
  const std::uint32_t nodes_;
};

/// Lower bounds of a message's costs, over all paths of the cluster.
class LeastMessage {
 public:
  explicit LeastMessage(const Machines& machines);

  /// Duration of a message on an idle path: o + bytes/B.
  double time(std::int64_t bytes) const;
  /// Work of a message on a port.
  double work(std::int64_t bytes) const;
  /// Line below work(): fixed work, and work per byte.
  Line line() const;
  /// Line below the work on the port that a host's nodes share, for a message between hosts.
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
