#include <algorithm>
#include <tuple>

#include "casync/rewrites.hpp"

namespace hipress::casync {
namespace {

using Edge = std::pair<TaskId, TaskId>;

/// A task that may be batched, with the properties that determine its batch. Candidates of one form
/// are sorted in the order of service, which is the same on all nodes if the graph can be folded.
struct Candidate {
  std::uint32_t representative;
  std::uint32_t depth;
  Kind kind;
  std::int8_t algorithm;
  /// Flags of a Decode that adds or gathers: its costs differ from those of one that overwrites.
  TaskFlags decodes;
  Picoseconds ready;
  std::uint32_t gradient;
  std::uint32_t peer_offset;
  std::uint32_t partition;
  TaskId id;

  auto form() const { return std::tie(representative, depth, kind, algorithm, decodes); }
  auto place() const { return std::tie(ready, gradient, peer_offset, partition, id); }
  auto key() const { return std::tuple_cat(form(), place()); }
};

std::int64_t slice_bytes(const Task& task) {
  return task.amount * static_cast<std::int64_t>(sizeof(float));
}

std::vector<std::uint32_t> depths(const GraphBuilder& builder) {
  // Visits edges in the order of their targets. Predecessors have lower ids, so a task's depth is
  // final before an edge from it is visited.
  std::vector<Edge> by_target(builder.edges().begin(), builder.edges().end());
  std::sort(by_target.begin(), by_target.end(),
            [](const Edge& a, const Edge& b) { return a.second < b.second; });
  std::vector<std::uint32_t> depth(builder.size(), 0);
  auto edge = by_target.begin();
  for (TaskId id = 0; id < builder.size(); ++id) {
    for (; edge != by_target.end() && edge->second == id; ++edge) {
      depth[id] = std::max(depth[id], depth[edge->first]);
    }
    const Task& task = builder.task(id);
    if (!is_computation(task) && task.kind != Kind::kJoin) ++depth[id];
  }
  return depth;
}

std::vector<Candidate> candidates(const GraphBuilder& builder, const Aggregation& rule,
                                  const Layout& layout) {
  const std::vector<std::uint32_t> depth = depths(builder);
  std::vector<Candidate> found;
  for (TaskId id = 0; id < builder.size(); ++id) {
    const Task& task = builder.task(id);
    const bool launches =
        task.kind == Kind::kEncode || task.kind == Kind::kDecode || task.kind == Kind::kMerge;
    if (!launches || codes_factors(task) || slice_bytes(task) >= rule.threshold_bytes) continue;
    found.push_back({.representative = builder.representative(task.node),
                     .depth = depth[id],
                     .kind = task.kind,
                     .algorithm = task.algorithm,
                     .decodes = task.flags & (kAccumulate | kGathers),
                     .ready = from_seconds(layout.units[task.gradient].ready_s),
                     .gradient = task.gradient,
                     .peer_offset = task.peer_offset,
                     .partition = task.partition,
                     .id = id});
  }
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return a.key() < b.key(); });
  return found;
}

/// Forms batches. Returns each task's leader; kNoIndex for leaders and single tasks.
std::vector<TaskId> choose_leaders(GraphBuilder& builder, const Aggregation& rule,
                                   const std::vector<Candidate>& candidates) {
  std::vector<TaskId> leader(builder.size(), kNoIndex);
  std::int64_t bytes = 0;
  const Candidate* first = nullptr;
  for (const Candidate& candidate : candidates) {
    Task& task = builder.task(candidate.id);
    const bool fits = first != nullptr && first->form() == candidate.form() &&
                      !(rule.wait && candidate.ready - first->ready > *rule.wait) &&
                      !(rule.limit_bytes && bytes + slice_bytes(task) > *rule.limit_bytes);
    if (!fits) {
      first = &candidate;
      bytes = slice_bytes(task);
      continue;
    }
    bytes += slice_bytes(task);
    leader[candidate.id] = first->id;
    task.flags |= kBatched;
    builder.task(first->id).flags |= kLeader;
    builder.task(first->id).amount += task.amount;
  }
  return leader;
}

}  // namespace

void batch_launches(GraphBuilder& builder, const Aggregation& rule, const Layout& layout) {
  const std::vector<TaskId> leader =
      choose_leaders(builder, rule, candidates(builder, rule, layout));
  std::vector<Edge> added;
  for (const auto& [before, after] : builder.edges()) {
    if (leader[after] != kNoIndex) added.emplace_back(before, leader[after]);
  }
  std::sort(added.begin(), added.end());
  added.erase(std::unique(added.begin(), added.end()), added.end());
  for (TaskId id = 0; id < leader.size(); ++id) {
    if (leader[id] != kNoIndex) added.emplace_back(leader[id], id);
  }
  for (const auto& [before, after] : added) builder.edge(before, after);
}

}  // namespace hipress::casync
