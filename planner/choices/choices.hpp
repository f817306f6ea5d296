#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "casync/plan.hpp"
#include "planner/problem/problem.hpp"
#include "sim/simulator.hpp"

namespace hipress::planner {

/// Settings of a whole plan, apart from the gradients' decisions.
struct Scheme {
  std::string topology;            ///< row of casync::topologies()
  std::string raw_topology = {};   ///< topology of raw gradients; empty: `topology`
  casync::Aggregation bulk = {};   ///< bulk groups; threshold 0: off
  casync::Aggregation batch = {};  ///< batches of launches; threshold 0: off
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  bool operator==(const Scheme&) const = default;
};

/// Option set: every plan that a search may return. A lower bound holds for all these plans.
struct Choices {
  std::vector<casync::Algorithm> algorithms;  ///< Decision::algorithm indexes it
  /// Options per gradient (input order), never empty. Options without compression come first.
  std::vector<std::vector<casync::Decision>> gradients;
  std::vector<Scheme> schemes;  ///< never empty; the first has all rules off
};

/// Makes the option set of a problem.
///
/// Gradients: raw, or any algorithm of the problem that does not refuse the shape, each with every
/// allowed K. K is 1, a power of two up to N, or N; also 2N and 4N if slices have at least 64 KiB.
/// Every slice has at least 32 elements. Algorithms with stages take the K of their smallest
/// factor, and N. The decisions of each baseline are added, so that every baseline with the
/// problem's algorithms is one of the plans. If folded_only(), only multiples of N are allowed.
///
/// Schemes: all combinations of the problem's topologies, transfer orders, bulk rules and batch
/// rules. A rule is off, or has a threshold and a limit: on the wait, as a share of the duration of
/// backward, or on the group's size. Topology "best" stands for ps and ring, and for allgather if
/// an algorithm is sparse; raw gradients take the same topology, another one of these, or the
/// library's all-reduce. Under a topology that sends_raw_alone(), gradients are raw or compressed
/// in stages.
Choices make_choices(const Problem& problem);

/// Bulk rules that plans of the problem may have: off, and thresholds with a limit on the wait or
/// on the group's size. Only off if the problem allows no groups.
std::vector<casync::Aggregation> bulk_rules(const Problem& problem);

/// True if whole graphs are too large to be simulated repeatedly, so plans must fold
/// (casync/folding.hpp).
bool folded_only(const Problem& problem);

/// Makes the plan that takes these options: one index into Choices::gradients[g] per gradient.
casync::Plan make_plan(const Problem& problem, const Choices& choices, std::size_t scheme,
                       std::span<const std::uint16_t> options);

}  // namespace hipress::planner
