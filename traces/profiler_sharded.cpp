// Part of ProfilerTrace for sharded parameters. Collectives are in the order in which the CPU
// starts them. Computation times exclude waits for collectives.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "io/error.hpp"
#include "models/model.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

// Largest number of operators outside of functions of backward between two functions of the same
// pass; more of them are a forward pass. The engine itself adds gradients by such operators.
constexpr std::int64_t kAddsOfEngine = 4;

constexpr std::int64_t kMostRanksOfProfile = 1 << 20;

/// Returns the count, or 0 if it is outside 1 … `most`.
std::int64_t told(std::int64_t count, std::int64_t most) {
  return count > 0 && count <= most ? count : 0;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kReduce;
}

std::int64_t in_common(const TimeSet& a, const TimeSet& b) {
  return a.length() + b.length() - both(a, b).length();
}

}  // namespace

/// The stream that computes for the longest time.
std::uint64_t ProfilerTrace::computing_stream() const {
  std::map<std::uint64_t, std::int64_t> times;
  for (const Activity& one : activities_) {
    if (one.computes) times[one.stream] += one.time.end - one.time.begin;
  }
  using Entry = std::pair<const std::uint64_t, std::int64_t>;
  const auto most = std::ranges::max_element(times, {}, &Entry::second);
  return most == times.end() ? 0 : most->first;
}

/// Sorts and joins the events of sharded jobs.
void ProfilerTrace::join_sharded() {
  const auto thread_and_start = [](const LayerRange& one) {
    return std::pair(one.thread, one.time.begin);
  };
  std::ranges::stable_sort(layer_ranges_, {}, thread_and_start);
  std::ranges::stable_sort(copies_, {}, &Copy::ns);
  const auto library_start = [](const LibraryCall& one) { return one.time.begin; };
  std::ranges::stable_sort(library_calls_, {}, library_start);
  read_types_of_library();
  std::vector<Interval> hooks = std::move(fsdp_hooks_);
  for (const auto* calls : {&collective_calls_, &c10d_calls_}) {
    for (const CollectiveCall& one : *calls) hooks.push_back(one.call.time);
  }
  sharding_hooks_ = TimeSet(std::move(hooks));
  std::vector<Interval> library;
  for (const LibraryCall& one : library_calls_) library.push_back(one.time);
  library_times_ = TimeSet(std::move(library));
  stream_ = computing_stream();
}

/// Sets missing types of collectives from gloo's next call of the same kind and size.
void ProfilerTrace::read_types_of_library() {
  constexpr std::ptrdiff_t kLooked = 16;
  for (CollectiveCall& call : collective_calls_) {
    if (!call.what.dtype.empty() || call.what.elements == 0) continue;
    const auto since =
        std::ranges::lower_bound(library_calls_, call.call.time.begin, {},
                                 [](const LibraryCall& one) { return one.time.begin; });
    const auto until = since + std::min(kLooked, library_calls_.end() - since);
    const auto found = std::find_if(since, until, [&](const LibraryCall& one) {
      return one.kind == call.what.kind() && one.elements == call.what.elements;
    });
    if (found != until) call.what.dtype = found->dtype;
  }
}

/// Backward passes of a window, which are functions of backward without forward between them.
std::vector<Interval> ProfilerTrace::backward_passes(const Window& window) const {
  std::vector<Interval> passes;
  const auto by_start = [](const Operator& one) { return one.time.begin; };
  auto at = std::ranges::lower_bound(backwards_, window.time.begin, {}, by_start);
  for (; at != backwards_.end() && at->time.begin < window.time.end; ++at) {
    if (!passes.empty()) {
      const auto key = [](const Begin& one) { return std::pair(one.thread, one.ns); };
      const auto since =
          std::ranges::lower_bound(forward_, std::pair(window.thread, passes.back().end), {}, key);
      const auto until =
          std::ranges::lower_bound(forward_, std::pair(window.thread, at->time.begin), {}, key);
      const std::int64_t most = at->thread == window.thread ? kAddsOfEngine : 0;
      if (until - since <= most) {
        passes.back().end = std::max(passes.back().end, at->time.end);
        continue;
      }
    }
    passes.push_back(at->time);
  }
  return passes;
}

/// Keeps only the passes of the last iteration. Optimizer steps separate iterations, whose number
/// is returned.
int ProfilerTrace::keep_last_iteration(std::vector<Interval>& passes) const {
  int iterations = 1;
  std::size_t first = 0;
  for (std::size_t i = 1; i < passes.size(); ++i) {
    const auto step =
        std::ranges::lower_bound(optimizer_steps_, passes[i - 1].begin, {}, &Interval::begin);
    if (step == optimizer_steps_.end() || step->begin >= passes[i].begin) continue;
    first = i;
    ++iterations;
  }
  passes.erase(passes.begin(), passes.begin() + static_cast<std::ptrdiff_t>(first));
  return iterations;
}

/// Innermost range of FSDP around a call; null without one.
const ProfilerTrace::LayerRange* ProfilerTrace::layer_range(std::uint64_t thread,
                                                            std::int64_t ns) const {
  const auto after = std::ranges::upper_bound(
      layer_ranges_, std::pair(thread, ns), {},
      [](const LayerRange& one) { return std::pair(one.thread, one.time.begin); });
  // Shorter ranges that began later may have ended before the call.
  constexpr std::ptrdiff_t kLooked = 8;
  const std::ptrdiff_t before = after - layer_ranges_.begin();
  for (std::ptrdiff_t i = 1; i <= std::min(before, kLooked); ++i) {
    const LayerRange& one = *(after - i);
    if (one.thread == thread && one.time.end >= ns) return &one;
  }
  return nullptr;
}

/// Index of the function of backward that made a call; -1 outside of backward.
std::int64_t ProfilerTrace::evaluation_of(std::uint64_t thread, std::int64_t ns) const {
  constexpr int kLooked = 64;
  auto at = std::ranges::upper_bound(backwards_, ns, {},
                                     [](const Operator& one) { return one.time.begin; });
  for (int looked = 0; at != backwards_.begin() && looked < kLooked; ++looked) {
    --at;
    if (at->thread == thread && at->time.end >= ns) return at - backwards_.begin();
  }
  return -1;
}

StepCollective ProfilerTrace::step_collective(const Collective& what, std::uint64_t thread,
                                              std::int64_t ns,
                                              const std::vector<Interval>& passes) const {
  StepCollective one{.kind = what.kind(),
                     .in_elements = told(what.elements, models::kMaxElements),
                     .out_elements = told(what.out_elements, models::kMaxElements),
                     .dtype = dtype_of(what.dtype),
                     .group_size = {},
                     .group = what.group};
  if (told(what.group_size.value_or(0), kMostRanksOfProfile) > 0) one.group_size = what.group_size;
  const LayerRange* const range = layer_range(thread, ns);
  if (range != nullptr) {
    one.of_fsdp = true;
    if (range->is_named) one.layer = range->layer;
  }
  const auto after = std::ranges::upper_bound(passes, ns, {}, &Interval::begin);
  one.pass = static_cast<int>(after - passes.begin());
  if (after == passes.begin()) return one;
  // After backward's last function, callbacks reduce the root's gradients: that is still backward.
  if (one.kind == CollectiveKind::kAllGather && ns > std::prev(after)->end) return one;
  --one.pass;
  one.in_backward = true;
  one.evaluation = evaluation_of(thread, ns);
  return one;
}

/// Collectives of a window. With a GPU, they are its kernels. Without one, they are calls, with the
/// times that the library recorded.
std::vector<ProfilerTrace::Started> ProfilerTrace::started(const Window& window) const {
  std::vector<Started> all;
  auto at = std::ranges::lower_bound(activities_, window.time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.time.end; ++at) {
    if (at->collective < 0) continue;
    const Collective& what = collectives_[static_cast<std::size_t>(at->collective)];
    all.push_back({what, at->thread, at->launch_ns, at->time});
  }
  if (!all.empty()) return all;
  const auto by_start = [](const CollectiveCall& one) { return one.call.time.begin; };
  auto call = std::ranges::lower_bound(collective_calls_, window.time.begin, {}, by_start);
  for (; call != collective_calls_.end() && call->call.time.begin < window.time.end; ++call) {
    const Operator& where = call->call;
    all.push_back({call->what, where.thread, where.time.begin, std::nullopt});
  }
  // The library's threads run the collectives in order.
  const auto library_start = [](const LibraryCall& one) { return one.time.begin; };
  auto done = std::ranges::lower_bound(library_calls_, window.time.begin, {}, library_start);
  const auto end = std::ranges::lower_bound(library_calls_, window.time.end, {}, library_start);
  if (end - done == static_cast<std::ptrdiff_t>(all.size())) {
    for (Started& one : all) one.time = (done++)->time;
  }
  return all;
}

/// Time of computation since a start, without exposed communication.
struct ProfilerTrace::Computed {
  std::int64_t since_ns;
  std::size_t next;  ///< index of the next activity
  Interval time{INT64_MAX, INT64_MIN};
  std::int64_t exposed_ns = 0;
};

ProfilerTrace::Computed ProfilerTrace::computed_since(std::int64_t ns) const {
  const auto at = std::ranges::lower_bound(activities_, ns, {}, &Activity::launch_ns);
  return {.since_ns = ns, .next = static_cast<std::size_t>(at - activities_.begin())};
}

/// Computation time in seconds of activities launched before `ns`; empty if there are none. `ns`
/// must not decrease between calls.
std::optional<double> ProfilerTrace::computed_until(Computed& computed, std::int64_t ns) const {
  if (!has_gpu()) {
    const Interval time{computed.since_ns, std::max(computed.since_ns, ns)};
    computed.exposed_ns += sharding_hooks_.within(time).length();
    computed.time = {std::min(computed.time.begin, time.begin), time.end};
    computed.since_ns = time.end;
    return to_seconds(time.end - computed.time.begin - computed.exposed_ns);
  }
  const std::int64_t before_ns = computed.time.end;
  for (; computed.next < activities_.size(); ++computed.next) {
    const Activity& one = activities_[computed.next];
    if (one.launch_ns >= ns) break;
    if (!one.computes || one.stream != stream_) continue;
    computed.time.begin = std::min(computed.time.begin, one.time.begin);
    computed.time.end = std::max(computed.time.end, one.time.end);
  }
  const Interval& time = computed.time;
  if (time.end <= time.begin) return std::nullopt;
  const Interval added{std::max(before_ns, time.begin), time.end};
  computed.exposed_ns += length_outside(communicating_.within(added), computing_.within(added));
  return to_seconds(time.end - time.begin - computed.exposed_ns);
}

std::optional<double> ProfilerTrace::exposed_s(const Interval& time) const {
  const TimeSet own({time});
  if (has_gpu()) return to_seconds(length_outside(own, computing_.within(time)));
  return to_seconds(in_common(own, sharding_hooks_.within(time)));
}

/// Shapes of the gradients that were copied into a reduction's buffer. Without such a copy, the
/// gradients accumulated since the previous reduction.
std::vector<std::vector<std::int64_t>> ProfilerTrace::gradients_before(std::int64_t since_ns,
                                                                       std::int64_t ns) const {
  const auto copy = std::ranges::lower_bound(copies_, ns, {}, &Copy::ns);
  if (copy != copies_.begin() && std::prev(copy)->ns >= since_ns) return std::prev(copy)->shapes;
  std::vector<std::vector<std::int64_t>> shapes;
  const auto by_start = [](const Operator& one) { return one.time.begin; };
  auto at = std::ranges::lower_bound(accumulates_, since_ns, {}, by_start);
  for (; at != accumulates_.end() && at->time.begin < ns; ++at) {
    const Operator* const inner = inside(*at);
    if (inner != nullptr && !inner->shape.empty()) shapes.push_back(inner->shape);
  }
  return shapes;
}

void ProfilerTrace::add_sharded(const Window& window, TracedStep& step, Imported& imported) const {
  const std::vector<Started> all = started(window);
  const bool any =
      std::ranges::any_of(all, [](const Started& one) { return reduces(one.what.kind()); });
  std::vector<Interval> passes = backward_passes(window);
  const int iterations = keep_last_iteration(passes);
  if (!any || imported.world_size.value_or(1) <= 1 || passes.empty()) return;
  const std::int64_t since_ns = after_optimizers({window.time.begin, passes.front().begin});
  ShardedStep sharded{.ranks = imported.world_size, .has_buckets = !step.buckets.empty()};
  for (const Started& one : all) {
    if (one.ns < since_ns) continue;
    StepCollective& made =
        sharded.collectives.emplace_back(step_collective(one.what, one.thread, one.ns, passes));
    made.started_ns = one.ns;
    made.time = one.time;
    if (one.time) made.exposed_s = exposed_s(*one.time);
  }
  add_times_of_passes(since_ns, passes, sharded);
  add_reductions(passes, sharded);
  std::int64_t last_ns = passes.back().end;
  for (const StepCollective& one : sharded.collectives) {
    if (reduces(one.kind) && one.in_backward) last_ns = std::max(last_ns, one.started_ns);
  }
  // A later gather belongs to the next forward pass, or gathers the optimizer's result.
  const auto next = std::ranges::find_if(sharded.collectives, [&](const StepCollective& one) {
    return one.kind == CollectiveKind::kAllGather && one.started_ns > last_ns;
  });
  const bool none = next == sharded.collectives.end();
  sharded.optimizer_s = optimizer_s({last_ns, none ? window.time.end : next->started_ns});
  step.sharded = std::move(sharded);
  if (step.iterations == 1) share_out(step, iterations);
  if (!has_gpu() && layer_ranges_.empty()) {
    imported.tell(
        "the CPU's waits for collectives: there are no ranges of FSDP's around them, so waiting "
        "counts as computation; trace a job on GPUs");
  }
  if (has_gpu() || library_calls_.empty()) return;
  const TimeSet library = library_times_.within(window.time);
  step.communication_s = to_seconds(library.length());
  step.exposed_communication_s =
      to_seconds(in_common(library, sharding_hooks_.within(window.time)));
}

void ProfilerTrace::add_times_of_passes(std::int64_t since_ns, const std::vector<Interval>& passes,
                                        ShardedStep& sharded) const {
  for (const Interval& pass : passes) {
    Computed forward = computed_since(since_ns);
    sharded.forward_s.push_back(computed_until(forward, pass.begin));
    since_ns = pass.end;
  }
}

/// Sets the ready times of the reductions, and the gradients in them.
void ProfilerTrace::add_reductions(const std::vector<Interval>& passes,
                                   ShardedStep& sharded) const {
  std::optional<Computed> backward;
  std::int64_t before_ns = 0;
  int pass = -1;
  for (StepCollective& one : sharded.collectives) {
    if (!reduces(one.kind) || !one.in_backward) continue;
    if (one.pass != pass) {
      pass = one.pass;
      before_ns = passes[static_cast<std::size_t>(pass)].begin;
      backward = computed_since(before_ns);
    }
    one.ready_s = computed_until(*backward, one.started_ns);
    one.gradients = gradients_before(before_ns, one.started_ns);
    before_ns = one.started_ns;
  }
}

/// Time of the computing stream's work in the window, in seconds. Without a GPU, the time of
/// optimizer steps.
std::optional<double> ProfilerTrace::optimizer_s(const Interval& window) const {
  std::vector<Interval> times;
  if (has_gpu()) {
    auto at = std::ranges::lower_bound(activities_, window.begin, {}, &Activity::launch_ns);
    for (; at != activities_.end() && at->launch_ns < window.end; ++at) {
      if (at->computes && at->stream == stream_) times.push_back(at->time);
    }
  } else {
    auto at = std::ranges::lower_bound(optimizer_steps_, window.begin, {}, &Interval::begin);
    for (; at != optimizer_steps_.end() && at->begin < window.end; ++at) times.push_back(*at);
  }
  return to_seconds(TimeSet(std::move(times)).length());
}

}  // namespace hipress::traces
