#include "traces/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::traces {
namespace {

constexpr double kBehind = 0.005;  // share of a step's length by which the GPU may lag behind
/// Largest difference between the CPU's and the GPU's clock. Profilers align them to microseconds.
constexpr std::int64_t kClocks_ns = 10'000'000;
constexpr double kShortestStep_s = 1e-6;

/// Throws io::InputError if a step has an impossible time.
void require_times(const TracedStep& step) {
  const bool works =
      !step.gradients.empty() || step.collectives > 0 || step.compute_s.value_or(0) > 0;
  if (works && step.length_s.value_or(1) >= 0 && step.length_s.value_or(1) < kShortestStep_s) {
    throw io::InputError(
        fmt::format("{} takes {}, which is too short: ts and dur must be "
                    "microseconds",
                    step.name, io::format_duration(*step.length_s)));
  }
  for (const auto& time : {step.length_s, step.forward_s, step.compute_s, step.communication_s,
                           step.exposed_communication_s, step.idle_s}) {
    if (time.value_or(0) >= 0) continue;
    throw io::InputError(
        fmt::format("{} would take {}: activities that it launched run before it, so its times are "
                    "wrong; record the trace again",
                    step.name, io::format_duration(*time)));
  }
}

}  // namespace

void ProfilerTrace::find_launches() {
  const auto key = [](const Call& call) { return std::pair(call.correlation, call.start_ns); };
  std::ranges::sort(calls_, {}, key);
  for (Activity& activity : activities_) {
    // Take the last call before it: correlations may repeat, and clocks may differ slightly.
    const std::pair at(activity.correlation, activity.time.begin);
    auto call = std::ranges::upper_bound(calls_, at, {}, key);
    const bool is_before =
        call != calls_.begin() && std::prev(call)->correlation == activity.correlation;
    if (is_before) --call;
    if (call == calls_.end() || call->correlation != activity.correlation) continue;
    if (activity.time.begin < call->start_ns - kClocks_ns) {
      throw io::InputError(
          fmt::format("an activity of the GPU (correlation {}) begins {} before the CPU launches "
                      "it: the clocks "
                      "of the two differ; record the trace again",
                      activity.correlation,
                      io::format_duration(to_seconds(call->start_ns - activity.time.begin))));
    }
    activity.launch_ns = call->start_ns;
    activity.thread = call->thread;
    launches_.emplace_back(call->thread, call->start_ns);
  }
  std::ranges::stable_sort(activities_, {}, &Activity::launch_ns);
  calls_ = {};
}

/// Times of hooks, each from its first submit to the end of the wait for its buckets.
std::vector<Interval> ProfilerTrace::times_of_hooks() const {
  std::vector<Interval> times;
  auto first = submits_.begin();
  for (const Operator& wait : waits_) {
    if (first == submits_.end() || first->call.time.begin > wait.time.begin) {
      times.push_back(wait.time);
      continue;
    }
    times.push_back({first->call.time.begin, wait.time.end});
    while (first != submits_.end() && first->call.time.begin <= wait.time.begin) ++first;
  }
  return times;
}

/// Time spent in hooks between `since_ns` and `ns`, in ns.
std::int64_t ProfilerTrace::hooks_before(std::int64_t ns, std::int64_t since_ns) const {
  return hooked_.within({since_ns, ns}).length();
}

void ProfilerTrace::find_times() {
  std::vector<Interval> computing, communicating = times_of_hooks(), active, waiting, hooked;
  for (const Operator& wait : waits_) waiting.push_back(wait.time);
  hooked = waiting;
  for (const CollectiveCall& submit : submits_) hooked.push_back(submit.call.time);
  waiting_ = TimeSet(std::move(waiting));
  hooked_ = TimeSet(std::move(hooked));
  for (const Activity& activity : activities_) {
    active.push_back(activity.time);
    if (activity.computes) computing.push_back(activity.time);
    if (activity.collective >= 0) communicating.push_back(activity.time);
  }
  computing_ = TimeSet(std::move(computing));
  communicating_ = TimeSet(std::move(communicating));
  active_ = TimeSet(std::move(active));
}

void ProfilerTrace::join() {
  const auto start = [](const Operator& one) { return one.time.begin; };
  const auto start_of_call = [](const CollectiveCall& one) { return one.call.time.begin; };
  const auto thread_and_start = [](const Operator& one) {
    return std::pair(one.thread, one.time.begin);
  };
  std::ranges::stable_sort(submits_, {}, start_of_call);
  std::ranges::stable_sort(waits_, {}, start);
  find_launches();
  find_times();
  std::ranges::stable_sort(accumulates_, {}, start);
  std::ranges::stable_sort(innermost_, {}, thread_and_start);
  std::ranges::stable_sort(launches_);
  std::ranges::stable_sort(backwards_, {}, start);
  std::ranges::stable_sort(collective_calls_, {}, start_of_call);
  std::ranges::stable_sort(steps_, {}, [](const Window& step) { return step.time.begin; });
  check_steps();
  std::ranges::sort(optimizer_steps_, {}, &Interval::begin);
  std::ranges::sort(sparse_, {},
                    [](const SparseUse& one) { return std::pair(one.thread, one.ns); });
  find_forward();
  std::vector<CollectiveCall> calls = std::move(described_);
  for (const auto* some : {&collective_calls_, &c10d_calls_}) {
    calls.insert(calls.end(), some->begin(), some->end());
  }
  if (collective_calls_.empty()) {
    collective_calls_ = std::move(c10d_calls_);
    std::ranges::stable_sort(collective_calls_, {}, start_of_call);
  }
  if (accumulates_.empty()) {
    accumulates_ = innermost_;
    std::ranges::stable_sort(accumulates_, {}, start);
  }
  take_out_returned();
  find_updates();
  // AccumulateGrads on one thread do not overlap: each ends where the next one begins.
  std::unordered_map<std::uint64_t, Operator*> last;
  for (Operator& one : accumulates_) {
    Operator*& before = last[one.thread];
    if (before != nullptr) before->time.end = std::min(before->time.end, one.time.begin);
    before = &one;
  }
  std::erase_if(products_,
                [&](const Begin& one) { return accumulate_around(one.thread, one.ns) == nullptr; });
  std::ranges::sort(products_, {}, &Begin::ns);
  describe(std::move(calls));
  join_sharded();
}

/// Removes evaluations that do not call AccumulateGrad: torch.autograd.grad() returned those
/// gradients.
void ProfilerTrace::take_out_returned() {
  const auto adds = [&](const Operator& one) { return inside(one) != nullptr || launches(one); };
  const bool has_operators = !innermost_.empty();
  if (!has_operators && (!has_functions_ || std::ranges::any_of(accumulates_, adds))) return;
  std::erase_if(accumulates_, [&](const Operator& one) {
    if (adds(one)) return false;
    returned_.push_back(one.time.begin);
    return true;
  });
}

void ProfilerTrace::find_updates() {
  std::ranges::stable_sort(in_place_, {}, &UpdateAt::ns);
  auto at = in_place_.begin();
  for (const Interval& step : optimizer_steps_) {
    std::vector<Update> updates;
    while (at != in_place_.end() && at->ns < step.begin) ++at;
    for (; at != in_place_.end() && at->ns < step.end; ++at) updates.push_back(std::move(at->what));
    updated_.add_step(updates);
  }
  in_place_ = {};
}

/// Sets missing sizes of collectives. They come from a call around their launch, or from one within
/// their own call: PyTorch's operator, the library's, or record_param_comms. A call describes one
/// launch.
void ProfilerTrace::describe(std::vector<CollectiveCall> calls) {
  const auto says_nothing = [](const CollectiveCall& one) {
    return one.what.name.empty() && !one.what.has_size();
  };
  std::erase_if(calls, says_nothing);
  const auto place = [](const CollectiveCall& one) {
    return std::pair(one.call.thread, one.call.time.begin);
  };
  std::ranges::stable_sort(calls, {}, place);
  constexpr std::ptrdiff_t kLooked = 8;
  std::vector<bool> taken(calls.size());
  const auto fill = [&](Collective& what, std::uint64_t thread, const Interval& time) {
    const auto after = std::ranges::upper_bound(calls, std::pair(thread, time.end), {}, place);
    const std::ptrdiff_t before = after - calls.begin();
    const Collective own = std::exchange(what, {});
    for (std::ptrdiff_t i = before; i-- > std::max<std::ptrdiff_t>(0, before - kLooked);) {
      const auto& [call, told] = calls[static_cast<std::size_t>(i)];
      if (call.thread != thread) break;
      const bool is_around = call.time.end >= time.begin;
      if (!is_around || taken[static_cast<std::size_t>(i)]) continue;
      taken[static_cast<std::size_t>(i)] = time.begin == time.end;
      what.add(told);
    }
    what.add(own);
  };
  for (const Activity& one : activities_) {
    if (one.collective < 0) continue;
    Collective& what = collectives_[static_cast<std::size_t>(one.collective)];
    if (!what.has_size()) fill(what, one.thread, {one.launch_ns, one.launch_ns});
  }
  for (CollectiveCall& one : collective_calls_) {
    if (!one.what.has_size() || one.what.name.empty()) {
      fill(one.what, one.call.thread, one.call.time);
    }
  }
  // Calls without a name and a size wait for a collective, or start a communicator.
  std::erase_if(collective_calls_, says_nothing);
}

/// Fills missing fields from another description of the collective.
void ProfilerTrace::Collective::add(const Collective& more) {
  if (name.empty()) name = more.name;
  if (dtype.empty()) dtype = more.dtype;
  if (group.empty()) group = more.group;
  if (elements == 0) elements = more.elements;
  if (out_elements == 0) out_elements = more.out_elements;
  if (!group_size) group_size = more.group_size;
}

/// Throws io::InputError if a step ends long after the next one begins.
void ProfilerTrace::check_steps() const {
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
    const Interval& time = steps_[i].time;
    const Window& next = steps_[i + 1];
    const std::int64_t over_ns = time.end - next.time.begin;
    if (over_ns <= kClocks_ns && 2 * over_ns <= time.end - time.begin) continue;
    throw io::InputError(fmt::format(
        "{} ends {} after {} begins: their times are wrong, or they are of several ranks; record "
        "the trace again, and give one rank's file",
        steps_[i].name, io::format_duration(to_seconds(over_ns)), next.name));
  }
}

/// Removes operators within backward from forward_.
void ProfilerTrace::find_forward() {
  std::ranges::sort(forward_, {}, [](const Begin& one) { return std::pair(one.thread, one.ns); });
  std::unordered_map<std::uint64_t, std::vector<Interval>> evaluations;
  for (const Operator& one : backwards_) evaluations[one.thread].push_back(one.time);
  std::unordered_map<std::uint64_t, TimeSet> backward;
  for (auto& [thread, times] : evaluations) backward.emplace(thread, std::move(times));
  const TimeSet none;
  std::size_t kept = 0, at = 0;
  std::uint64_t thread = 0;
  const std::vector<Interval>* times = nullptr;
  for (const Begin& one : forward_) {
    if (times == nullptr || one.thread != thread) {
      thread = one.thread;
      const auto found = backward.find(thread);
      times = &(found == backward.end() ? none : found->second).intervals();
      at = 0;
    }
    while (at < times->size() && (*times)[at].end < one.ns) ++at;
    if (at < times->size() && (*times)[at].begin <= one.ns) continue;
    forward_[kept++] = one;
  }
  forward_.resize(kept);
  forward_.shrink_to_fit();
}

/// Windows of the iterations, or a single window for the whole trace.
std::vector<ProfilerTrace::Window> ProfilerTrace::windows(Imported& imported) const {
  if (!steps_.empty()) {
    // A step ends where the next one begins.
    std::vector<Window> disjoint = steps_;
    for (std::size_t i = 0; i + 1 < disjoint.size(); ++i) {
      disjoint[i].time.end = std::min(disjoint[i].time.end, disjoint[i + 1].time.begin);
    }
    return whole_steps(disjoint, imported);
  }
  imported.has_steps = optimizer_steps_.size() == 1;
  if (!imported.has_steps) {
    imported.tell(fmt::format(
        "the start of its steps: it has {} steps of an optimizer and no ProfilerStep, which "
        "PyTorch writes only for a profiler with schedule=torch.profiler.schedule(...), and "
        "profiler.step() after each iteration",
        optimizer_steps_.size()));
  }
  // The thread of forward is the one with the most operators.
  std::unordered_map<std::uint64_t, std::size_t> operators;
  std::uint64_t thread = 0;
  for (const Begin& one : forward_) {
    if (++operators[one.thread] > operators[thread]) thread = one.thread;
  }
  return {{"trace", extent_, thread}};
}

/// First computing activity launched in that interval; null without one.
const ProfilerTrace::Activity* ProfilerTrace::first_computing(std::int64_t since_ns,
                                                              std::int64_t until_ns) const {
  auto at = std::ranges::lower_bound(activities_, since_ns, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < until_ns; ++at) {
    if (at->computes) return &*at;
  }
  return nullptr;
}

/// True if the GPU still starts work of a step well after the step has ended on the CPU.
bool ProfilerTrace::is_behind(const Window& window) const {
  const double length = static_cast<double>(window.time.end - window.time.begin);
  const auto late_ns = window.time.end + static_cast<std::int64_t>(kBehind * length);
  auto at = std::ranges::lower_bound(activities_, window.time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.time.end; ++at) {
    if (at->computes && at->time.begin > late_ns) return true;
  }
  return false;
}

/// Times of the steps on the GPU: each from the step's first computing kernel to the next step's.
/// If the GPU never lags behind, times on the CPU.
std::vector<Interval> ProfilerTrace::times_on_gpu(const std::vector<Window>& windows) const {
  std::vector<Interval> times;
  for (const Window& window : windows) times.push_back(window.time);
  if (steps_.empty() ||
      std::ranges::none_of(windows, [&](const Window& window) { return is_behind(window); })) {
    return times;
  }
  const Activity* next = first_computing(windows.back().time.end, INT64_MAX);
  for (std::size_t i = windows.size(); i-- > 0;) {
    const Interval& on_cpu = windows[i].time;
    const Activity* const first = first_computing(on_cpu.begin, on_cpu.end);
    if (first == nullptr) continue;
    std::int64_t end_ns = first->time.end;
    auto at = std::ranges::lower_bound(activities_, on_cpu.begin, {}, &Activity::launch_ns);
    for (; at != activities_.end() && at->launch_ns < on_cpu.end; ++at) {
      end_ns = std::max(end_ns, at->time.end);
    }
    times[i] = {first->time.begin, next != nullptr ? next->time.begin : end_ns};
    next = first;
  }
  return times;
}

void ProfilerTrace::add_times(const Interval& window, TracedStep& step) const {
  if (!has_gpu()) {
    if (waits_.empty()) return;
    step.communication_s = to_seconds(communicating_.within(window).length());
    step.exposed_communication_s = to_seconds(waiting_.within(window).length());
    return;
  }
  const TimeSet computing = computing_.within(window);
  const TimeSet communicating = communicating_.within(window);
  step.compute_s = to_seconds(computing.length());
  step.communication_s = to_seconds(communicating.length());
  step.exposed_communication_s = to_seconds(length_outside(communicating, computing));
  step.idle_s = to_seconds(window.end - window.begin - active_.within(window).length());
}

void ProfilerTrace::add_world_size(const TraceHeader& header, Imported& imported) const {
  imported.world_size = header.world_size;
  if (imported.world_size) return;
  for (const Collective& what : collectives_) {
    if (what.group_size) imported.world_size = std::max(imported.world_size, what.group_size);
  }
  for (const auto* calls : {&collective_calls_, &submits_}) {
    for (const CollectiveCall& one : *calls) {
      if (one.what.group_size) {
        imported.world_size = std::max(imported.world_size, one.what.group_size);
      }
    }
  }
}

/// Sets the world size to the number of ranks that average gradients; other groups do not show it.
void ProfilerTrace::take_world_size_of_gradients(Imported& imported) {
  std::optional<std::int64_t> ranks;
  for (const TracedStep& step : imported.steps) {
    if (step.sharded) return;
    for (const TracedGradient& one : step.carriers()) ranks = std::max(ranks, one.ranks);
  }
  if (ranks) imported.world_size = ranks;
}

std::string ProfilerTrace::why_no_gpu() const {
  const auto most =
      std::ranges::max_element(unknown_, {}, [](const auto& category) { return category.second; });
  if (most == unknown_.end()) {
    return "it has no activity of a GPU; record ProfilerActivity.CUDA (of other devices theirs)";
  }
  return fmt::format(
      "it has no event of category kernel, gpu_memcpy or gpu_memset, the categories of a device's "
      "activities; {} events are of category {}",
      most->second, io::quote(most->first));
}

std::optional<Imported> ProfilerTrace::finish(const TraceHeader& header) {
  if (!is_of_pytorch_) return std::nullopt;
  for (const std::int64_t rank : header.ranks) ranks_.add_rank(rank);
  ranks_.require_one();
  join();
  Imported imported{
      .format = "PyTorch profiler", .hardware = short_text(header.device), .events = events_};
  imported.mix = kernels_.mix();
  add_world_size(header, imported);
  const std::vector<Window> steps = windows(imported);
  const std::vector<Interval> times = times_on_gpu(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TracedStep step{.name = steps[i].name, .length_s = to_seconds(times[i].end - times[i].begin)};
    add_times(times[i], step);
    add_gradients(steps[i], step, imported);
    const Carried carried = add_collectives(steps[i], step);
    add_sharded(steps[i], step, imported);
    add_exposed(times[i], carried, step);
    require_times(step);
    imported.steps.push_back(std::move(step));
  }
  if (!header.world_size) take_world_size_of_gradients(imported);
  if (has_gpu() && std::ranges::all_of(activities_, [](const Activity& activity) {
        return activity.launch_ns < 0;
      })) {
    imported.tell(
        fmt::format("the step of each launch, and with it times of gradients: none of {} "
                    "activities of the GPU has the correlation of a call of a runtime",
                    activities_.size()));
  }
  if (!has_gpu()) {
    imported.tell(fmt::format("times of computation{}: {}",
                              waits_.empty() ? " and communication" : "", why_no_gpu()));
  }
  if (header.is_open) {
    imported.tell(
        "missing events at its end: its array of events has no closing bracket, which the format "
        "allows, and a file that was cut off looks the same");
  }
  return imported;
}

}  // namespace hipress::traces
