#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// One node's part of a timeline, in as few stretches as a page has room for.
namespace hipress::report {

/// Span::first_unit of what is of no gradient: Forward and Steps.
inline constexpr std::uint32_t kNoUnit = UINT32_MAX;

/// A stretch of time in which a lane works on tasks of one kind and one unit, a gradient or a bulk
/// group; of several units where there is no room for one span each.
struct Span {
  casync::Picoseconds start{}, end{};
  casync::Kind kind = casync::Kind::kJoin;
  std::uint32_t first_unit = kNoUnit, last_unit = kNoUnit;  ///< all between may be in it
  std::uint32_t tasks = 0;
  /// Of all its tasks: bytes of messages, elements of what codecs work on; 0 of computation.
  std::int64_t amount = 0;
  bool critical = false;  ///< one of its tasks is on the critical path
  std::uint32_t row = 0;  ///< spans of one lane and row do not overlap
};

/// What one resource of the node does, its spans in order of their start.
struct Lane {
  std::string_view name;
  std::uint32_t rows = 0;
  std::vector<Span> spans;
};

struct NodeTimeline {
  std::uint32_t node = 0;  ///< a representative
  /// Gaps up to this length are inside spans; 0: every span is busy from its start to its end.
  casync::Picoseconds gap{};
  bool joins_units = false;      ///< some spans are of several units
  std::vector<Lane> lanes = {};  ///< those that do something, in the order of a trace's
};

/// The lanes of `node` (in a folded graph, of the node that stands for all): computation, codecs,
/// messages out and in, and the exchange between its GPUs. Tasks of no length are left out. Spans
/// are merged over growing gaps, and at last over units, until there are at most `most_spans`, or
/// one for each lane and kind. `critical_path` is of the same graph.
NodeTimeline node_timeline(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                           const std::vector<casync::TaskId>& critical_path, std::uint32_t node,
                           std::size_t most_spans);

}  // namespace hipress::report
