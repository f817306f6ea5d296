#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "casync/folding.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// When a scenario's graph is folded (casync/folding.hpp).
enum class Fold : std::uint8_t {
  kExactly,  ///< where that changes no time
  kNever,
  kAlways,  ///< also where slices are unequal: then with bounds on the error
};
Fold parse_fold(std::string_view name);  ///< auto, never, always; else InputError that lists them

/// What makes nodes of a cluster differ, so that no graph on it can be folded; empty if nothing
/// does.
std::string difference_between_nodes(const costs::Cluster& cluster);

/// The same for the plans of sharded schedules, whose groups are all alike, or not simulated.
std::string difference_between_groups(const costs::Cluster& cluster);

/// Whether a scenario's graph can be folded, by its plan and its cluster.
casync::Foldability foldability(const Scenario& scenario);

/// How much of a scenario's graph is made.
struct FoldingChoice {
  casync::Folding folding = casync::Folding::kNone;
  bool exact = true;           ///< false: folded though slices are unequal
  std::string why_whole = {};  ///< of a whole graph: why it is not folded
};

/// With Fold::kAlways, InputError where nodes do different things.
FoldingChoice choose_folding(const Scenario& scenario, Fold fold);

/// A scenario's graph, and how much of it there is.
struct ExpandedGraph {
  casync::TaskGraph graph;
  bool exact = true;           ///< false: folded though slices are unequal
  std::string why_whole = {};  ///< of a whole graph: why it was not folded
};

/// As choose_folding() says.
ExpandedGraph expand(const Scenario& scenario, Fold fold);

/// Iteration times with every slice of a gradient as long as its longest, and as its shortest. The
/// whole graph's time lies between them, if less work never takes longer (it may: list scheduling
/// has anomalies; Graham, 1969).
struct FoldingBounds {
  Picoseconds shortest{}, longest{};
};
FoldingBounds folding_bounds(const Scenario& scenario);

}  // namespace hipress::sim
