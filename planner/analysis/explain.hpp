#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/memory.hpp"
#include "planner/timing/workbench.hpp"

namespace hipress::planner {

/// When a gradient's synchronisation ends, and whether the iteration waits for it.
enum class Place : std::uint8_t {
  kHidden,    ///< before backward does
  kCritical,  ///< some of it is on the critical path
  kOffPath,   ///< after backward, but others take longer
};
const char* to_string(Place place);  ///< "hidden behind backward" …

/// Kind of time that takes most of a gradient's stretches on the critical path, or most of its work
/// if it has no such stretch.
enum class Limiter : std::uint8_t {
  kNothing,    ///< it has none
  kBandwidth,  ///< bytes over the link's bandwidth
  kLatency,    ///< what messages take however short they are: overheads, and latency per hop
  kCodec,      ///< encoding, decoding and merging
  kLocal,      ///< between the GPUs of a node
};
const char* to_string(Limiter limiter);  ///< "bandwidth" …

/// Why one gradient is decided as it is.
struct GradientRow {
  std::uint32_t gradient = 0;
  std::string option;                      ///< "onebit, K = 16"
  std::optional<std::string> runner_up;    ///< the best other option; none: there is no other
  std::optional<double> runner_up_cost_s;  ///< that the iteration would take longer with it
  Place place = Place::kHidden;
  Limiter limiter = Limiter::kNothing;
  std::string group;        ///< of the bulk group that it is in; empty: none
  double ready_s = 0;       ///< its Backward's end, from the iteration's start
  double done_s = 0;        ///< synchronised on every node
  double on_path_s = 0;     ///< what its messages and codec tasks have of the critical path
  std::string why() const;  ///< "on the critical path, bound by bandwidth, in bulk0"
};

/// Gradients of as many elements.
struct SizeClass {
  std::int64_t elements = 0;
  std::size_t count = 0;
  std::vector<std::pair<std::string, std::size_t>> options;  ///< and how many have it, most first
  std::size_t hidden = 0, critical = 0;
};

struct Explanation {
  std::vector<GradientRow> rows;   ///< as backward completes them
  std::vector<SizeClass> classes;  ///< the most elements first
  bool estimated = false;          ///< runner-up costs are differences on network port
  PlanMemory memory;
};

/// Explains a plan from its simulated timeline. io::InputError where its graph is too large.
Explanation explain(const Problem& problem, const TimedPlan& plan);

}  // namespace hipress::planner
