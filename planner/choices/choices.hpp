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

/// How a whole plan is laid out, apart from its gradients' decisions.
struct Scheme {
  std::string topology;            ///< a row of casync::topologies()
  std::string raw_topology = {};   ///< empty: `topology` too
  casync::Aggregation bulk = {};   ///< threshold 0: off
  casync::Aggregation batch = {};  ///< threshold 0: off
  sim::TransferOrder transfer_order = sim::TransferOrder::kReady;
  bool operator==(const Scheme&) const = default;
};

/// The option set: every plan that a search may return, and that a lower bound is about.
struct Choices {
  std::vector<casync::Algorithm> algorithms;  ///< Decision::algorithm indexes it
  /// Per gradient (input order): its options, those that send it as what it is first, never empty.
  std::vector<std::vector<casync::Decision>> gradients;
  std::vector<Scheme> schemes;  ///< never empty; the first has everything off
};

/// What the plans of a problem may be. K is 1, a power of two up to N, N, and 2N and 4N where
/// slices stay at least 64 KiB; only K whose slices have at least 32 elements. A gradient is sent
/// raw or with any algorithm of the problem that does not refuse its shape, with each of these K,
/// for an algorithm with stages by its smallest factor, and N; besides it may be what a baseline
/// decides for it, so that every baseline of the problem's algorithms is one of the plans. Where
/// folded_only(), other K than multiples of N are left out, those of the baselines too. Schemes are
/// all combinations of the problem's topologies, bulk and batch rules (off, and thresholds with
/// waits of some shares of backward) and transfer orders. Topology "best": ps and ring, and
/// allgather where an algorithm is sparse, for raw gradients that one or the library's all-reduce.
/// A topology that sends_raw_alone(): everything raw, or compressed in stages.
Choices make_choices(const Problem& problem);

/// Problem::choices of it.
Choices choices_of(const Problem& problem);

/// The rules for bulk groups that plans of the problem may have: off, then thresholds with what
/// groups wait for at most. Off alone where it allows no groups.
std::vector<casync::Aggregation> bulk_rules(const Problem& problem);

/// Whether graphs of all nodes are too large to be simulated again and again, so that only plans
/// whose graphs can be folded (casync/folding.hpp) are searched.
bool folded_only(const Problem& problem);

/// The plan with these options, one index into Choices::gradients[g] per gradient.
casync::Plan make_plan(const Problem& problem, const Choices& choices, std::size_t scheme,
                       std::span<const std::uint16_t> options);

}  // namespace hipress::planner
