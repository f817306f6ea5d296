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
  /// `curve` gives the time of a launch at speed 1. The launch is split among the `gpus` GPUs of a
  /// node of speed `fastest`. `rounds_by_speed`: some node's speed is not 1, so the simulator
  /// rounds the times that it divides by speeds.
  LeastCost(costs::Curve curve, std::uint32_t gpus, double fastest, bool rounds_by_speed);

  /// Least cost of one launch for x elements or more.
  double of(std::int64_t x) const;
  /// Least cost of x elements of a larger launch, if each other element costs line().b.
  double of_part(std::int64_t x) const;
  /// Line below the cost of every launch. Its B is the least cost per element.
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

/// Lower bound, in ps at speed `fastest`, of a codec stage that takes `seconds` at speed 1.
double least_stage(double seconds, double fastest, bool rounds_by_speed);

/// Costs of one form of messages: raw, or one algorithm.
struct Form {
  const casync::Algorithm* algorithm = nullptr;  ///< null: raw
  LeastCost encode, decode, add;                 ///< raw: only `add` is set, as the cost of a Merge
  /// Bytes per element of large messages; other messages have at least as many.
  double bytes_per_element = 0;

  std::int64_t bytes(std::int64_t elements) const;
};

/// Lower bounds for raw messages and for each algorithm, but not for codec stages (factors). The
/// algorithms must outlive the result. Throws InputError if the profile lacks an algorithm.
std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready);

/// Limit of a simulated port: if `work` begins at `start`, it ends no earlier than `start` +
/// `factor` × (`work` − `credit`).
struct PortLimit {
  double factor = 1;  ///< above 1 if a port sends and receives at once with less than twice the
                      ///< bandwidth of one direction
  double credit = 0;  ///< work, in ps, that a burst lets through at once
};
PortLimit port_limit(const Machines& machines);

/// Lower bound of a library's all-reduce among the nodes of a cluster.
class LeastAllReduce {
 public:
  explicit LeastAllReduce(const Machines& machines);

  double time(std::int64_t bytes) const;
  /// Line below the times of all-reduces of all sizes.
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

  /// Duration of a message on an idle path: overhead + bytes / bandwidth.
  double time(std::int64_t bytes) const;
  /// Time that a message occupies a port.
  double work(std::int64_t bytes) const;
  /// Line below work(): its constant part, and its slope per byte.
  Line line() const;
  /// Line below the work of a message between hosts, on the port that a host's nodes share.
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
