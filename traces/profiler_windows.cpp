// Part of ProfilerTrace that joins the profiler's windows into steps of the job. A step has several
// windows if profiler.step() is called in every micro-batch.

#include <fmt/format.h>

#include <algorithm>

#include "traces/profiler_trace.hpp"

namespace hipress::traces {
namespace {

/// Name of joined windows: "ProfilerStep#5-8" for "ProfilerStep#5" to "ProfilerStep#8".
std::string name_of_both(const std::string& first, const std::string& last) {
  return first + "-" + last.substr(last.find('#') + 1);
}

}  // namespace

/// A window's work on gradients. A window synchronises if AccumulateGrad starts a collective in it.
/// If no window has such a collective, a window synchronises if it reduces within FSDP's ranges or,
/// if no window does, within functions of backward.
struct ProfilerTrace::WindowWork {
  std::size_t gradients = 0;
  bool goes_backward = false, synchronises = false;
  bool steps = false;  ///< an optimizer steps before the next backward
};

std::vector<ProfilerTrace::WindowWork> ProfilerTrace::work_of(
    const std::vector<Window>& windows) const {
  const auto by_start = [](const Operator& one) { return one.time.begin; };
  std::vector<WindowWork> works(windows.size());
  std::vector<bool> in_ranges(windows.size()), in_backward(windows.size());
  std::int64_t next_ns = INT64_MAX;  // start of the next backward
  for (std::size_t i = windows.size(); i-- > 0;) {
    const Interval& time = windows[i].time;
    WindowWork& work = works[i];
    auto at = std::ranges::lower_bound(accumulates_, time.begin, {}, by_start);
    for (; at != accumulates_.end() && at->time.begin < time.end; ++at) {
      ++work.gradients;
      work.synchronises =
          work.synchronises || std::ranges::any_of(collectives_of(*at), [](const Collective* what) {
            return what->kind() != CollectiveKind::kAllGather;
          });
    }
    const auto first = std::ranges::lower_bound(backwards_, time.begin, {}, by_start);
    const auto end = std::ranges::lower_bound(backwards_, time.end, {}, by_start);
    work.goes_backward = first != end || work.gradients > 0;
    for (const Started& one : started(windows[i])) {
      const CollectiveKind kind = one.what.kind();
      if (kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kReduce) continue;
      in_ranges[i] = in_ranges[i] || layer_range(one.thread, one.ns) != nullptr;
      in_backward[i] = in_backward[i] || evaluation_of(one.thread, one.ns) >= 0;
    }
    if (first == end) continue;
    const std::int64_t last_ns = std::prev(end)->time.begin;
    const auto optimizer =
        std::ranges::lower_bound(optimizer_steps_, last_ns, {}, &Interval::begin);
    work.steps = optimizer != optimizer_steps_.end() && optimizer->begin < next_ns;
    next_ns = first->time.begin;
  }
  for (const std::vector<bool>& evidence : {in_ranges, in_backward}) {
    if (std::ranges::any_of(works, &WindowWork::synchronises)) break;
    for (std::size_t i = 0; i < works.size(); ++i) works[i].synchronises = evidence[i];
  }
  return works;
}

/// For each window, true if it ends a step of the job. Empty if each window is a step.
std::vector<bool> ProfilerTrace::ends_of_steps(const std::vector<Window>& windows,
                                               const std::vector<WindowWork>& works,
                                               Imported& imported) {
  const bool synchronises = std::ranges::any_of(works, &WindowWork::synchronises);
  const std::size_t most = std::ranges::max(works, {}, &WindowWork::gradients).gradients;
  std::vector<bool> ends;
  std::size_t ending = 0, silent = 0, apart = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const WindowWork& work = works[i];
    ends.push_back(synchronises ? work.synchronises : work.steps);
    ending += ends.back() ? 1 : 0;
    // If no window synchronises, the first and the last do not count: their optimizer's step may be
    // cut off.
    const bool counts = synchronises || (i > 0 && i + 1 < works.size());
    if (ends.back() || !counts || !work.goes_backward || work.gradients < most) continue;
    ++silent;
    apart += synchronises && work.steps ? 1 : 0;
  }
  if (ending == 0 || silent == 0) return {};
  if (apart == 0) return ends;
  imported.problem = fmt::format(
      "of the {} windows from {} on, {} step an optimizer without a synchronisation before it, so "
      "that ranks train apart (local SGD, DiLoCo): a model is of steps that synchronise; give "
      "hipress-plan and hipress-sim a model of one step and `schedule` local(...)",
      works.size(), windows.front().name, apart);
  return {};
}

/// Joins the windows of each step. Leaves out partial steps at the ends.
std::vector<ProfilerTrace::Window> ProfilerTrace::whole_steps(const std::vector<Window>& windows,
                                                              Imported& imported) const {
  if (windows.size() < 2) return windows;
  const std::vector<WindowWork> works = work_of(windows);
  const std::vector<bool> ends = ends_of_steps(windows, works, imported);
  if (ends.empty()) return windows;
  struct Group {
    std::size_t first = 0, last = 0, micro_steps = 0;
  };
  std::vector<Group> groups;
  std::vector<Window> merged;
  Group open;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    open.micro_steps += works[i].goes_backward ? 1 : 0;
    open.last = i;
    if (!ends[i]) continue;
    groups.push_back(open);
    open = {.first = i + 1};
  }
  // The step that is cut off at the end has at least one more micro-step.
  std::size_t least = open.micro_steps > 0 ? open.micro_steps + 1 : 0;
  for (std::size_t g = 1; g < groups.size(); ++g) least = std::max(least, groups[g].micro_steps);
  std::size_t left_out = open.micro_steps;
  if (groups.front().micro_steps < least) {
    left_out += groups.front().micro_steps;
    groups.erase(groups.begin());
  }
  const bool by_optimizer = std::ranges::none_of(works, &WindowWork::synchronises);
  const auto ending = std::ranges::count(ends, true);
  const std::string cause = fmt::format(
      "profiler.step() is called in every micro-batch, and of {} windows, {} {} {}",
      std::ranges::count(works, true, &WindowWork::goes_backward), ending,
      ending == 1 ? "has" : "have", by_optimizer ? "an optimizer's step" : "a synchronisation");
  if (groups.empty()) {
    imported.problem = fmt::format(
        "{}: no step of the job is whole in the trace; record at least twice as many windows as a "
        "step has micro-batches, or call profiler.step() behind the optimizer's step alone",
        cause);
    return windows;
  }
  for (const Group& group : groups) {
    const Window& last = windows[group.last];
    merged.push_back({name_of_both(windows[group.first].name, last.name),
                      {windows[group.first].time.begin, last.time.end},
                      last.thread});
  }
  imported.assumed.push_back(fmt::format(
      "{}: a step is {} windows{}{}", cause, groups.back().micro_steps,
      groups.size() == 1 && least <= 1 ? ", if the trace begins with one" : "",
      left_out > 0 ? fmt::format("; {} windows of steps that are not whole are left out", left_out)
                   : ""));
  return merged;
}

}  // namespace hipress::traces
