// Part of NodeTrace for jobs that shard their parameters.

#include <algorithm>
#include <utility>

#include "models/model.hpp"
#include "traces/autograd_names.hpp"
#include "traces/node_trace.hpp"
#include "traces/sharded_ranges.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {}  // namespace

/// Keeps collectives, copies and ranges of FSDP.
void NodeTrace::keep_sharded(const TraceNode& node, std::string_view name) {
  const auto range = range_of_fsdp(name);
  if (range) ranges_.emplace(node.id, *range);
  if (name.starts_with(kEvaluate)) evaluations_.insert(node.id);
  if (node.shapes == nullptr) return;
  if (name == "aten::_chunk_cat") {
    started_.push_back({.id = node.id, .is_copy = true});
    started_.back().what.gradients = node.shapes->first;
    return;
  }
  if (!name.starts_with("c10d::")) return;
  StepCollective what{.kind = collective_named(name), .dtype = dtype_of(node.dtype)};
  switch (what.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      what.out_elements = elements_of_all(node.shapes->first);
      what.in_elements = elements_of_all(node.shapes->second);
      break;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
      what.in_elements = elements_of_all(node.shapes->first);
      break;
    case CollectiveKind::kOther:
      return;
  }
  started_.push_back({.id = node.id, .what = std::move(what)});
}

/// Sets the layer of a collective, and the function of backward that called it.
void NodeTrace::find_callers(Start& start) const {
  auto at = links_.find(start.id);
  for (int depth = 0; at != links_.end() && depth < kDeepestCall; ++depth) {
    const auto range = ranges_.find(at->first);
    if (range != ranges_.end() && !start.what.of_fsdp) {
      start.what.of_fsdp = range->second.communicates;
      if (range->second.is_named) start.what.layer = range->second.layer;
    }
    if (evaluations_.contains(at->first)) start.what.evaluation = at->first;
    at = links_.find(at->second.parent);
  }
}

/// Collectives of nodes with IDs from `first` to below `end`. Empty if nothing reduces to shards.
std::optional<ShardedStep> NodeTrace::sharded_between(std::int64_t first, std::int64_t end) const {
  ShardedStep step;
  std::vector<std::vector<std::int64_t>> copied;
  bool reduces = false, reduced = false;
  int pass = 0;
  const auto backward = evaluations_.lower_bound(first);
  for (Start start : started_) {
    if (start.id < first || start.id >= end) continue;
    if (start.is_copy) {
      copied = std::move(start.what.gradients);
      continue;
    }
    find_callers(start);
    StepCollective& what = start.what;
    const bool begun = backward != evaluations_.end() && *backward < start.id;
    // A gather belongs to the next pass if it is outside of backward and follows a reduction.
    const bool of_next = what.kind == CollectiveKind::kAllGather && what.evaluation < 0 && reduced;
    if (of_next) {
      ++pass;
      reduced = false;
    }
    what.pass = pass;
    what.in_backward = begun && (what.kind != CollectiveKind::kAllGather || what.evaluation >= 0);
    if (what.kind == CollectiveKind::kReduceScatter && what.in_backward) {
      reduces = reduced = true;
      what.gradients = std::exchange(copied, {});
    }
    step.collectives.push_back(std::move(what));
  }
  return reduces ? std::optional(std::move(step)) : std::nullopt;
}

void NodeTrace::add_sharded(std::vector<TracedStep>& steps,
                            const std::vector<std::int64_t>& begins) const {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t end = i + 1 < begins.size() ? begins[i + 1] : INT64_MAX;
    steps[i].sharded = sharded_between(begins[i], end);
    if (steps[i].sharded) steps[i].sharded->has_buckets = !steps[i].buckets.empty();
  }
}

}  // namespace hipress::traces
