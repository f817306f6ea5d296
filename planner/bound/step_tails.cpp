#include "planner/bound/step_tails.hpp"

#include <algorithm>
#include <map>

namespace hipress::planner {
namespace {

/// Steps in topological order.
std::vector<std::uint32_t> in_order(const Pattern& pattern) {
  std::vector<std::uint16_t> waits = pattern.waits;
  std::vector<std::uint32_t> order = pattern.sources;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t last = pattern.steps[order[i] + 1].successors;
    for (std::uint32_t at = pattern.steps[order[i]].successors; at < last; ++at) {
      const std::uint32_t next = pattern.successors[at];
      if (--waits[next] == 0) order.push_back(next);
    }
  }
  return order;
}

/// Work on a serial resource, and the least time that follows it.
struct Piece {
  std::uint64_t resource;
  std::int64_t work, behind;
};

/// Earliest end of all pieces and of the times behind them, if every resource begins at 0. The best
/// order begins with the piece that has the longest time behind it.
std::int64_t least_makespan(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.resource != b.resource ? a.resource < b.resource : a.behind > b.behind;
  });
  std::int64_t most = 0, done = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    done = (i > 0 && pieces[i].resource == pieces[i - 1].resource ? done : 0) + pieces[i].work;
    most = std::max(most, done + pieces[i].behind);
  }
  return most;
}

std::uint64_t resource_of(const Step& step) {
  return (static_cast<std::uint64_t>(step.resource) << 32) | step.node;
}

/// Least time from a step's end until all steps that depend on it have ended.
std::int64_t behind(const Pattern& pattern, std::uint32_t step, const StepTails& tails) {
  std::vector<Piece> pieces;
  const std::uint32_t last = pattern.steps[step + 1].successors;
  for (std::uint32_t at = pattern.steps[step].successors; at < last; ++at) {
    const std::uint32_t next = pattern.successors[at];
    const Step& one = pattern.steps[next];
    pieces.push_back({resource_of(one), one.work, tails[next] - one.work});
  }
  return least_makespan(pieces);
}

/// True if codec streams and egresses serve the steps without predecessors first, in their order.
/// They do if none of these steps is instant.
bool begins_in_order(const Pattern& pattern) {
  return std::none_of(pattern.sources.begin(), pattern.sources.end(), [&](std::uint32_t source) {
    return pattern.steps[source].work + pattern.steps[source].delay == 0;
  });
}

}  // namespace

std::vector<std::int64_t> step_heads(const Pattern& pattern, bool ports_in_order,
                                     bool codecs_in_order) {
  std::vector<std::int64_t> heads(pattern.count(), 0);
  std::map<std::uint64_t, std::int64_t> begun;
  if (begins_in_order(pattern)) {
    for (const std::uint32_t source : pattern.sources) {
      const Resource resource = pattern.steps[source].resource;
      if (!ports_in_order && resource == Resource::kPorts) continue;
      if (!codecs_in_order && resource == Resource::kCodec) continue;
      std::int64_t& done = begun[resource_of(pattern.steps[source])];
      heads[source] = done;
      done += pattern.steps[source].work;
    }
  }
  for (const std::uint32_t step : in_order(pattern)) {
    const Step& one = pattern.steps[step];
    if (pattern.waits[step] > 0) {
      const auto done = begun.find(resource_of(one));
      if (done != begun.end()) heads[step] = std::max(heads[step], done->second);
    }
    const std::uint32_t last = pattern.steps[step + 1].successors;
    for (std::uint32_t at = one.successors; at < last; ++at) {
      std::int64_t& head = heads[pattern.successors[at]];
      head = std::max(head, heads[step] + one.work + one.delay);
    }
  }
  return heads;
}

StepTails step_tails(const Pattern& pattern) {
  StepTails tails(pattern.count());
  const std::vector<std::uint32_t> order = in_order(pattern);
  for (auto step = order.rbegin(); step != order.rend(); ++step) {
    tails[*step] =
        pattern.steps[*step].work + pattern.steps[*step].delay + behind(pattern, *step, tails);
  }
  return tails;
}

}  // namespace hipress::planner
