#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/memory.hpp"
#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// Place of a gradient's synchronisation in the iteration.
enum class Place : std::uint8_t {
  kHidden,    ///< ends before the end of backward
  kCritical,  ///< partly on the critical path
  kOffPath,   ///< ends after backward, but not on the critical path
};
const char* to_string(Place place);  ///< "hidden behind backward" …

/// Kind of work that takes most of a gradient's time: on the critical path, or in total off it.
enum class Limiter : std::uint8_t {
  kNothing,    ///< no work
  kBandwidth,  ///< bytes over bandwidth
  kLatency,    ///< overheads, and the latency of each hop
  kCodec,      ///< encoding, decoding and merging
  kLocal,      ///< exchange between the GPUs of a node
};
const char* to_string(Limiter limiter);  ///< "bandwidth" …

/// Explanation of one gradient's decision.
struct GradientRow {
  std::uint32_t gradient = 0;
  std::string option;                      ///< "onebit, K = 16"
  std::optional<std::string> runner_up;    ///< best other option; none: no other exists
  std::optional<double> runner_up_cost_s;  ///< increase of the iteration time with the runner-up
  Place place = Place::kHidden;
  Limiter limiter = Limiter::kNothing;
  std::string group;        ///< name of its bulk group; empty: none
  double ready_s = 0;       ///< end of its Backward, from the iteration's start
  double done_s = 0;        ///< time at which it is synchronised on every node
  double on_path_s = 0;     ///< part of the critical path that its messages and codec tasks take
  std::string why() const;  ///< "on the critical path, bound by bandwidth, in bulk0"
};

/// Gradients of equal size.
struct SizeClass {
  std::int64_t elements = 0;
  std::size_t count = 0;
  /// Options with their counts, the most frequent first.
  std::vector<std::pair<std::string, std::size_t>> options;
  std::size_t hidden = 0, critical = 0;
};

struct Explanation {
  std::vector<GradientRow> rows;   ///< in backward order
  std::vector<SizeClass> classes;  ///< the most elements first
  bool estimated = false;  ///< the costs of runner-ups are estimates with the network model `port`
  PlanMemory memory;
};

/// Explains a plan from its simulated timeline. Throws io::InputError if its graph is too large.
Explanation explain(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
