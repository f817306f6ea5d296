#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// Timeline of one node, merged into as few spans as a page has room for.
namespace hipress::report {

/// Span::first_unit of tasks without a gradient: Forward and Steps.
inline constexpr std::uint32_t kNoUnit = UINT32_MAX;

/// Time in which a lane works on tasks of one kind and one unit (gradient or bucket), or of several
/// units if there is no room for a span each.
struct Span {
  casync::Picoseconds start{}, end{};
  casync::Kind kind = casync::Kind::kJoin;
  std::uint32_t first_unit = kNoUnit, last_unit = kNoUnit;  ///< range of units that may be in it
  std::uint32_t tasks = 0;
  /// Sum over its tasks: bytes of messages, elements that codecs process; 0 for computation.
  std::int64_t amount = 0;
  bool critical = false;  ///< one of its tasks is on the critical path
  std::uint32_t row = 0;  ///< spans of one lane and row do not overlap
};

/// Spans of one resource of the node, in order of start.
struct Lane {
  std::string_view name;
  std::uint32_t rows = 0;
  std::vector<Span> spans;
};

struct NodeTimeline {
  std::uint32_t node = 0;  ///< node, a representative if the graph is folded
  /// Longest gap merged into a span; 0: spans are busy from start to end.
  casync::Picoseconds gap{};
  bool joins_units = false;      ///< true if spans may have several units
  std::vector<Lane> lanes = {};  ///< non-empty lanes, in the order of a trace's
};

/// Spans of `node`, or of its representative in a folded graph: computation, codecs, messages sent
/// and received, and the exchange between its GPUs. Tasks of zero length are left out. Spans are
/// merged over growing gaps, and finally over units, until at most `most_spans` remain, or one per
/// lane and kind. `critical_path` belongs to the same graph.
NodeTimeline node_timeline(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                           const std::vector<casync::TaskId>& critical_path, std::uint32_t node,
                           std::size_t most_spans);

}  // namespace hipress::report
