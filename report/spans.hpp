#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "casync/task_graph.hpp"
#include "traces/timeline.hpp"

/// Timeline of one node, merged into no more spans than a page has room for.
namespace hipress::report {

/// Value of Span::first_unit for tasks without a gradient (Forward and Steps).
inline constexpr std::uint32_t kNoUnit = UINT32_MAX;

/// Stretch of time in which a lane works on tasks of one kind and one unit (gradient or bucket). If
/// there is no room for that, it covers several units.
struct Span {
  casync::Picoseconds start{}, end{};
  casync::Kind kind = casync::Kind::kJoin;
  std::uint32_t first_unit = kNoUnit, last_unit = kNoUnit;  ///< range with the units of its tasks
  std::uint32_t tasks = 0;
  /// Sum over its tasks: bytes of messages, or elements that codecs process; 0 for computation.
  std::int64_t amount = 0;
  bool critical = false;  ///< one of its tasks is on the critical path
  std::uint32_t row = 0;  ///< spans of one lane and row do not overlap
};

/// Spans of one resource of the node, in the order of their start.
struct Lane {
  std::string_view name;
  std::uint32_t rows = 0;
  std::vector<Span> spans;
};

struct NodeTimeline {
  std::uint32_t node = 0;  ///< node shown; of a folded graph, the representative
  /// Longest gap within a span. If it is 0, spans are busy from start to end.
  casync::Picoseconds gap{};
  bool joins_units = false;      ///< spans may cover several units
  std::vector<Lane> lanes = {};  ///< non-empty lanes, in the order of a trace's lanes
};

/// Spans of `node`, or of the representative of a folded graph: computation, codecs, messages sent
/// and received, and the exchange between the node's GPUs. Tasks of zero length are left out. Spans
/// are merged over growing gaps, and finally over units. This ends when at most `most_spans`
/// remain, or one per lane and kind. `critical_path` belongs to the same graph.
NodeTimeline node_timeline(const casync::TaskGraph& graph, const traces::Timeline& timeline,
                           const std::vector<casync::TaskId>& critical_path, std::uint32_t node,
                           std::size_t most_spans);

}  // namespace hipress::report
