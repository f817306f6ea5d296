#include "traces/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "io/error.hpp"
#include "models/model.hpp"
#include "models/shape.hpp"

namespace hipress::traces {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kStep = "ProfilerStep#";
constexpr std::string_view kAllReduce = "allreduce";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";
constexpr std::string_view kSubmit = "hipress::submit(";
constexpr std::string_view kWait = "hipress::wait(";

/// What an event is, by its category; older profilers write other names, and those without Kineto
/// none.
enum class Category : std::uint8_t { kOperator, kKernel, kMemory, kCall, kOther };
struct CategoryRow {
  std::string_view text;
  Category category;
};
constexpr CategoryRow kCategories[] = {
    {"cpu_op", Category::kOperator},
    {"Operator", Category::kOperator},
    {"user_annotation", Category::kOperator},
    {"", Category::kOperator},
    {"kernel", Category::kKernel},
    {"Kernel", Category::kKernel},
    {"gpu_memcpy", Category::kMemory},
    {"Memcpy", Category::kMemory},
    {"gpu_memset", Category::kMemory},
    {"Memset", Category::kMemory},
    {"cuda_runtime", Category::kCall},
    {"cuda_driver", Category::kCall},
    {"Runtime", Category::kCall},
    {"hip_runtime", Category::kCall},
};

Category category_of(std::string_view text) {
  for (const CategoryRow& row : kCategories) {
    if (row.text == text) return row.category;
  }
  return Category::kOther;
}

double to_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

void add_once(std::vector<std::string>& to, std::string sentence) {
  if (std::ranges::find(to, sentence) == to.end()) to.push_back(std::move(sentence));
}

/// What follows `key` and = in a range's name, up to the next comma or bracket; empty if it is not
/// there.
std::string_view value_in(std::string_view range, std::string_view key) {
  const std::size_t at = range.find(fmt::format("{}=", key));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = range.substr(at + key.size() + 1);
  return rest.substr(0, rest.find_first_of(",)"));
}

/// 0 for what is no number.
std::int64_t number_in(std::string_view range, std::string_view key) {
  const std::string_view text = value_in(range, key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

/// Their product; 0 for what is no shape.
std::int64_t elements_or_none(const std::vector<std::int64_t>& shape) {
  try {
    return models::elements_of(shape);
  } catch (const io::InputError&) {
    return 0;
  }
}

}  // namespace

std::string dtype_of(const std::string& text) {
  struct Row {
    std::string_view text, dtype;
  };
  static constexpr Row kRows[] = {
      {"Float", "float32"},
      {"float", "float32"},
      {"Half", "float16"},
      {"c10::Half", "float16"},
      {"BFloat16", "bfloat16"},
      {"c10::BFloat16", "bfloat16"},
      {"Tensor(float)", "float32"},
      {"Tensor(c10::Half)", "float16"},
      {"Tensor(c10::BFloat16)", "bfloat16"},
  };
  for (const Row& row : kRows) {
    if (row.text == text) return std::string(row.dtype);
  }
  return text;
}

void ProfilerTrace::add(const ProfilerEvent& event) {
  ++events_;
  if (event.phase != "X" || !event.has_times) return;
  switch (category_of(event.category)) {
    case Category::kKernel:
    case Category::kMemory:
      add_activity(event);
      break;
    case Category::kOperator:
      add_operator(event);
      break;
    case Category::kCall:
      if (event.correlation) {
        calls_.push_back({*event.correlation, event.start_ns, event.thread});
      }
      break;
    case Category::kOther:
      return;
  }
  extent_.begin = std::min(extent_.begin, event.start_ns);
  extent_.end = std::max(extent_.end, event.start_ns + event.length_ns);
}

ProfilerTrace::Collective ProfilerTrace::collective_in(const ProfilerEvent& event) {
  Collective what{.name = short_text(event.collective),
                  .dtype = short_text(event.dtype),
                  .elements = event.in_elements.value_or(0),
                  .external_id = event.external_id.value_or(-1),
                  .group_size = event.group_size};
  if (what.name.empty() && event.name.find("AllReduce") != std::string::npos) {
    what.name = kAllReduce;  // of older profilers' kernels
  }
  return what;
}

/// The bucket of a range of python/hipress/_ddp.py, as "hipress::submit(bucket=0, bytes=1024,
/// dtype=float32, ranks=2)".
ProfilerTrace::Collective ProfilerTrace::bucket_in(std::string_view range) {
  Collective what{.name = std::string(kAllReduce), .dtype = short_text(value_in(range, "dtype"))};
  for (const models::Dtype dtype :
       {models::Dtype::kFloat32, models::Dtype::kFloat16, models::Dtype::kBfloat16}) {
    if (what.dtype == models::to_string(dtype)) {
      what.elements = number_in(range, "bytes") / models::size_of(dtype);
    }
  }
  const std::int64_t ranks = number_in(range, "ranks");
  if (ranks > 0) what.group_size = ranks;
  return what;
}

void ProfilerTrace::add_activity(const ProfilerEvent& event) {
  is_of_pytorch_ = true;
  const bool is_kernel = category_of(event.category) == Category::kKernel;
  const bool communicates = is_kernel && event.name.find("nccl") != std::string::npos;
  Activity activity{.time = {event.start_ns, event.start_ns + event.length_ns},
                    .correlation = event.correlation.value_or(-1),
                    .computes = is_kernel && !communicates};
  if (communicates) {
    activity.collective = static_cast<int>(collectives_.size());
    collectives_.push_back(collective_in(event));
  }
  activities_.push_back(activity);
}

void ProfilerTrace::add_operator(const ProfilerEvent& event) {
  const std::string_view name = event.name;
  const Operator plain{.time = {event.start_ns, event.start_ns + event.length_ns},
                       .thread = event.thread};
  if (name.starts_with(kStep)) {
    steps_.emplace_back(short_text(event.name), plain.time);
  } else if (name.starts_with(kOptimizerStep)) {
    ++optimizer_steps_;
  } else if (name.starts_with(kSubmit)) {
    submits_.push_back({plain, bucket_in(name)});
  } else if (name.starts_with(kWait)) {
    waits_.push_back(plain);
  } else if (name == "record_param_comms") {
    collective_calls_.push_back({plain, collective_in(event)});
  } else if (name == kAccumulate) {
    innermost_.push_back(plain);
    innermost_.back().shape = event.input_shape;
    innermost_.back().dtype = short_text(event.input_type);
  } else if (name.starts_with(kEvaluate)) {
    backwards_.push_back(plain);
    if (name.substr(kEvaluate.size()) == kAccumulate) accumulates_.push_back(plain);
  } else if (!name.starts_with("aten::")) {
    return;
  }
  is_of_pytorch_ = true;
}

void ProfilerTrace::find_launches() {
  const auto key = [](const Call& call) { return std::pair(call.correlation, call.start_ns); };
  std::ranges::sort(calls_, {}, key);
  for (Activity& activity : activities_) {
    // The last call before it, should numbers come again; clocks may differ by a little.
    const std::pair at(activity.correlation, activity.time.begin);
    auto call = std::ranges::upper_bound(calls_, at, {}, key);
    const bool is_before =
        call != calls_.begin() && std::prev(call)->correlation == activity.correlation;
    if (is_before) --call;
    if (call == calls_.end() || call->correlation != activity.correlation) continue;
    activity.launch_ns = call->start_ns;
    activity.thread = call->thread;
  }
  std::ranges::stable_sort(activities_, {}, &Activity::launch_ns);
  calls_ = {};
}

/// From a hook's first submit to the end of the wait for it and for those that followed.
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

/// How long hooks had lasted at a time, since another.
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
  std::ranges::stable_sort(submits_, {}, start_of_call);
  std::ranges::stable_sort(waits_, {}, start);
  find_launches();
  find_times();
  std::ranges::stable_sort(accumulates_, {}, start);
  std::ranges::stable_sort(innermost_, {}, start);
  std::ranges::stable_sort(backwards_, {}, start);
  std::ranges::stable_sort(collective_calls_, {}, start_of_call);
  std::ranges::stable_sort(steps_, {}, [](const auto& step) { return step.second.begin; });
  if (accumulates_.empty()) accumulates_ = innermost_;
  // Older profilers describe a collective at its call alone.
  std::unordered_map<std::int64_t, const Collective*> called;
  for (const CollectiveCall& one : collective_calls_) {
    called.emplace(one.what.external_id, &one.what);
  }
  for (Collective& what : collectives_) {
    const auto found = called.find(what.external_id);
    if (what.elements == 0 && found != called.end()) what = *found->second;
  }
}

/// The iterations, or all of the trace.
std::vector<std::pair<std::string, Interval>> ProfilerTrace::windows(Imported& imported) const {
  if (!steps_.empty()) return steps_;
  imported.has_steps = optimizer_steps_ == 1;
  if (!imported.has_steps) {
    add_once(
        imported.not_told,
        fmt::format("where its steps begin: it has {} steps of an optimizer and no ProfilerStep; "
                    "call profiler.step() after each iteration",
                    optimizer_steps_));
  }
  return {{"trace", extent_}};
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

/// When backward begins: on the GPU with the first activity that it launches.
std::optional<std::int64_t> ProfilerTrace::backward_start(const Interval& window,
                                                          std::uint64_t thread) const {
  const auto first = std::ranges::find_if(backwards_, [&](const Operator& one) {
    return one.thread == thread && one.time.begin >= window.begin;
  });
  if (first == backwards_.end() || first->time.begin >= window.end) return std::nullopt;
  if (!has_gpu()) return first->time.begin;
  auto at = std::ranges::lower_bound(activities_, first->time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.end; ++at) {
    if (at->thread == thread && at->collective < 0) return at->time.begin;
  }
  return std::nullopt;
}

/// The AccumulateGrad that an evaluation holds; null if there is none.
const ProfilerTrace::Operator* ProfilerTrace::inside(const Operator& outer) const {
  auto at = std::ranges::lower_bound(innermost_, outer.time.begin, {},
                                     [](const Operator& one) { return one.time.begin; });
  for (; at != innermost_.end() && at->time.begin <= outer.time.end; ++at) {
    if (at->thread == outer.thread) return &*at;
  }
  return nullptr;
}

/// What an AccumulateGrad communicates, in the order in which it is launched.
std::vector<const ProfilerTrace::Collective*> ProfilerTrace::collectives_of(
    const Operator& accumulate) const {
  std::vector<const Collective*> found;
  const Interval& time = accumulate.time;
  const auto add_calls = [&](const std::vector<CollectiveCall>& calls) {
    auto at = std::ranges::lower_bound(
        calls, time.begin, {}, [](const CollectiveCall& one) { return one.call.time.begin; });
    for (; at != calls.end() && at->call.time.begin <= time.end; ++at) {
      if (at->call.thread == accumulate.thread) found.push_back(&at->what);
    }
  };
  add_calls(submits_);
  if (!has_gpu()) {
    add_calls(collective_calls_);
    return found;
  }
  auto at = std::ranges::lower_bound(activities_, time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns <= time.end; ++at) {
    if (at->collective >= 0 && at->thread == accumulate.thread) {
      found.push_back(&collectives_[static_cast<std::size_t>(at->collective)]);
    }
  }
  return found;
}

void ProfilerTrace::add_gradients(const Interval& window, TracedStep& step,
                                  Imported& imported) const {
  const auto start = [](const Operator& one) { return one.time.begin; };
  auto at = std::ranges::lower_bound(accumulates_, window.begin, {}, start);
  const auto end = std::ranges::lower_bound(accumulates_, window.end, {}, start);
  if (at == end) return;
  const std::uint64_t thread = at->thread;
  const auto backward_ns = backward_start(window, thread);
  if (backward_ns) step.forward_s = to_seconds(*backward_ns - window.begin);
  auto launched = std::ranges::lower_bound(activities_, window.begin, {}, &Activity::launch_ns);
  std::int64_t last_ns = INT64_MIN;  // the end of what this thread has launched, but collectives
  std::optional<double> last_ready_s;
  for (; at != end; ++at) {
    if (at->thread != thread) {
      add_once(imported.not_told, fmt::format("the gradients of {}: AccumulateGrad runs on several "
                                              "threads; trace one process per GPU",
                                              step.name));
      step.gradients.clear();
      step.buckets.clear();
      return;
    }
    std::int64_t own_ns = INT64_MIN;
    for (; launched != activities_.end() && launched->launch_ns <= at->time.end; ++launched) {
      if (launched->thread != thread || launched->collective >= 0) continue;
      last_ns = std::max(last_ns, launched->time.end);
      if (launched->launch_ns >= at->time.begin) own_ns = std::max(own_ns, launched->time.end);
    }
    const Operator* const inner = inside(*at);
    // Where it launches nothing, the gradient is what the thread has launched before it.
    std::int64_t ready_ns = own_ns == INT64_MIN ? last_ns : own_ns;
    if (!has_gpu()) {
      ready_ns = inner != nullptr ? inner->time.end : at->time.end;
      // Hooks of buckets before it are no computation.
      if (backward_ns) ready_ns -= hooks_before(ready_ns, *backward_ns);
    }
    TracedGradient gradient;
    if (backward_ns && ready_ns != INT64_MIN) {
      gradient.ready_s = std::max(0.0, to_seconds(ready_ns - *backward_ns));
      last_ready_s = std::max(last_ready_s.value_or(0), *gradient.ready_s);
    }
    if (inner != nullptr && !inner->shape.empty()) {
      gradient.shape = inner->shape;
      gradient.dtype = dtype_of(inner->dtype);
      gradient.elements = elements_or_none(gradient.shape);
    }
    step.gradients.push_back(std::move(gradient));
    for (const Collective* what : collectives_of(*at)) {
      if (!what->name.starts_with(kAllReduce)) {
        add_once(
            imported.not_told,
            fmt::format("a model: gradients of {} travel by {}, and only all-reduces are read",
                        step.name,
                        what->name.empty() ? "collectives without names" : io::quote(what->name)));
        continue;
      }
      step.buckets.push_back({.elements = std::max<std::int64_t>(0, what->elements),
                              .shape = {},
                              .dtype = dtype_of(what->dtype),
                              .ready_s = last_ready_s});
    }
  }
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

std::optional<Imported> ProfilerTrace::finish(const TraceHeader& header) {
  if (!is_of_pytorch_) return std::nullopt;
  join();
  Imported imported{
      .format = "PyTorch profiler", .hardware = short_text(header.device), .events = events_};
  add_world_size(header, imported);
  for (const auto& [name, window] : windows(imported)) {
    TracedStep step{.name = name, .length_s = to_seconds(window.end - window.begin)};
    add_times(window, step);
    add_gradients(window, step, imported);
    imported.steps.push_back(std::move(step));
  }
  if (!has_gpu()) {
    add_once(imported.not_told, fmt::format("times of computation{}: it has no activity of a GPU; "
                                            "record ProfilerActivity.CUDA",
                                            waits_.empty() ? " and communication" : ""));
  }
  return imported;
}

}  // namespace hipress::traces
