#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "casync/folding.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// Condition for folding a scenario's graph (casync/folding.hpp).
enum class Fold : std::uint8_t {
  kExactly,  ///< fold only if the predicted times stay exact
  kNever,
  kAlways,  ///< fold also if slices are unequal, with bounds on the error
};
Fold parse_fold(std::string_view name);  ///< "auto", "never" or "always"; else InputError

/// Difference between a cluster's nodes that rules out folding; empty if no such difference exists.
std::string difference_between_nodes(const costs::Cluster& cluster);

/// Difference between a cluster's nodes that rules out folding for sharded schedules; empty if none
/// does. Host links, racks, slow links and bursts never do: their simulation requires that these
/// are the same for all groups of nodes.
std::string difference_between_groups(const costs::Cluster& cluster);

/// Foldability of a scenario's graph, from its plan and cluster.
casync::Foldability foldability(const Scenario& scenario);

/// Choice between a scenario's whole graph and a folded one.
struct FoldingChoice {
  casync::Folding folding = casync::Folding::kNone;
  bool exact = true;           ///< false: folded although slices are unequal
  std::string why_whole = {};  ///< reason for a whole graph; empty if folded
};

/// Chooses by `fold` and foldability(). Throws InputError for Fold::kAlways if nodes differ.
FoldingChoice choose_folding(const Scenario& scenario, Fold fold);

/// Graph of a scenario, whole or folded.
struct ExpandedGraph {
  casync::TaskGraph graph;
  bool exact = true;           ///< false: folded although slices are unequal
  std::string why_whole = {};  ///< reason for a whole graph; empty if folded
};

/// Expands the graph that choose_folding() chooses. Throws InputError as choose_folding() does.
ExpandedGraph expand(const Scenario& scenario, Fold fold);

/// Iteration times if all slices of a gradient were as long as its longest, or as its shortest,
/// slice. The whole graph's time lies between them if less work never takes longer. Scheduling
/// anomalies can break that (Graham, 1969).
struct FoldingBounds {
  Picoseconds shortest{}, longest{};
};
FoldingBounds folding_bounds(const Scenario& scenario);

}  // namespace hipress::sim
