#include "traces/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
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
constexpr std::string_view kC10d = "c10d::";
constexpr double kBehind = 0.005;  // of a step: what a launch may take
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
    {"Runtime", Category::kCall},
};

Category category_of(std::string_view text) {
  for (const CategoryRow& row : kCategories) {
    if (row.text == text) return row.category;
  }
  // Of any vendor: cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, privateuse1_runtime …
  const bool is_call = text.ends_with("_runtime") || text.ends_with("_driver");
  return is_call ? Category::kCall : Category::kOther;
}

double to_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// Of what is said of step after step, the first few.
void add_once(std::vector<std::string>& to, std::string sentence) {
  constexpr std::size_t kMost = 8;
  if (to.size() > kMost || std::ranges::find(to, sentence) != to.end()) return;
  to.push_back(to.size() < kMost ? std::move(sentence) : std::string("and more of the same"));
}

/// Categories that are neither of the CPU's operators nor of a device.
constexpr std::string_view kBeside[] = {"python_function",
                                        "gpu_user_annotation",
                                        "overhead",
                                        "Trace",
                                        "ac2g",
                                        "fwdbwd",
                                        "async_cpu_to_gpu",
                                        "async_gpu",
                                        "cuda_sync",
                                        "cuda_event",
                                        "external_correlation",
                                        "cpu_instant_event"};

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

std::string dtype_of(const std::string& whole) {
  // A list of tensors of one type has that.
  constexpr std::string_view kList = "GenericList[";
  std::string text = whole;
  if (text.starts_with(kList) && text.ends_with(']')) {
    text = text.substr(kList.size(), text.size() - kList.size() - 1);
    text = text.substr(0, text.find(','));
  }
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
  return whole;
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
      count_unknown(event.category);
      return;
  }
  extent_.begin = std::min(extent_.begin, event.start_ns);
  extent_.end = std::max(extent_.end, event.start_ns + event.length_ns);
}

void ProfilerTrace::count_unknown(const std::string& category) {
  constexpr std::size_t kMost = 64;
  if (std::ranges::find(kBeside, category) != std::end(kBeside)) return;
  if (unknown_.size() >= kMost && !unknown_.contains(category)) return;
  ++unknown_[short_text(category)];
}

ProfilerTrace::Collective ProfilerTrace::collective_in(const ProfilerEvent& event) {
  Collective what{.name = short_text(event.collective),
                  .dtype = short_text(event.dtype),
                  .elements = event.in_elements.value_or(0),
                  .external_id = event.external_id.value_or(-1),
                  .group_size = event.group_size};
  // Older profilers' kernels say it by their names, as operators do.
  if (what.name.empty()) what.name = short_text(event.name);
  if (event.name.starts_with(kC10d)) {
    what.elements = event.input_shape.empty() ? 0 : elements_or_none(event.input_shape);
    what.dtype.clear();  // that of a list
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

/// What an all-reduce carries. An operator's list of tensors has a size and no type.
TracedGradient ProfilerTrace::traced_of(const Collective& what) {
  TracedGradient traced;
  traced.elements = std::max<std::int64_t>(0, what.elements);
  traced.dtype = dtype_of(what.dtype);
  traced.assumed = traced.elements > 0 && traced.dtype.empty();
  if (traced.assumed) traced.dtype = models::to_string(models::Dtype::kFloat32);
  return traced;
}

void ProfilerTrace::add_activity(const ProfilerEvent& event) {
  is_of_pytorch_ = true;
  const bool is_kernel = category_of(event.category) == Category::kKernel;
  // What an event says of itself comes first.
  const bool communicates =
      is_kernel && (!event.collective.empty() || communication_of(event.name));
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
    steps_.push_back({short_text(event.name), plain.time, plain.thread});
  } else if (name.starts_with(kOptimizerStep)) {
    optimizer_steps_.push_back(plain.time);
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
    innermost_.back().has_shape = event.has_input_shape;
  } else if (name.starts_with(kEvaluate)) {
    backwards_.push_back(plain);
    if (name.substr(kEvaluate.size()) == kAccumulate) accumulates_.push_back(plain);
  } else if (name.starts_with(kC10d)) {
    c10d_calls_.push_back({plain, collective_in(event)});
  } else if (name.starts_with("aten::")) {
    forward_.push_back({plain.thread, plain.time.begin});
  } else {
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
    launches_.emplace_back(call->thread, call->start_ns);
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
  std::ranges::sort(optimizer_steps_, {}, &Interval::begin);
  find_forward();
  if (collective_calls_.empty()) {
    std::erase_if(c10d_calls_, [](const CollectiveCall& one) {
      return one.what.kind() == CollectiveKind::kOther;
    });
    collective_calls_ = std::move(c10d_calls_);
    std::ranges::stable_sort(collective_calls_, {}, start_of_call);
  }
  if (accumulates_.empty()) {
    accumulates_ = innermost_;
    std::ranges::stable_sort(accumulates_, {}, start);
  }
  // On one thread none begins before the last has ended.
  std::unordered_map<std::uint64_t, Operator*> last;
  for (Operator& one : accumulates_) {
    Operator*& before = last[one.thread];
    if (before != nullptr) before->time.end = std::min(before->time.end, one.time.begin);
    before = &one;
  }
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

/// Leaves of the operators those outside of backward.
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

/// The iterations, or all of the trace.
std::vector<ProfilerTrace::Window> ProfilerTrace::windows(Imported& imported) const {
  if (!steps_.empty()) {
    // A step ends where the next one begins.
    std::vector<Window> disjoint = steps_;
    for (std::size_t i = 0; i + 1 < disjoint.size(); ++i) {
      disjoint[i].time.end = std::min(disjoint[i].time.end, disjoint[i + 1].time.begin);
    }
    return disjoint;
  }
  imported.has_steps = optimizer_steps_.size() == 1;
  if (!imported.has_steps) {
    add_once(imported.not_told,
             fmt::format("where its steps begin: it has {} steps of an optimizer and no "
                         "ProfilerStep, which PyTorch writes only for a profiler with "
                         "schedule=torch.profiler.schedule(...), and profiler.step() after each "
                         "iteration",
                         optimizer_steps_.size()));
  }
  // The thread that goes forward.
  std::unordered_map<std::uint64_t, std::size_t> operators;
  std::uint64_t thread = 0;
  for (const Begin& one : forward_) {
    if (++operators[one.thread] > operators[thread]) thread = one.thread;
  }
  return {{"trace", extent_, thread}};
}

/// Of what was launched in that time, the first kernel that computes; null: none.
const ProfilerTrace::Activity* ProfilerTrace::first_computing(std::int64_t since_ns,
                                                              std::int64_t until_ns) const {
  auto at = std::ranges::lower_bound(activities_, since_ns, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < until_ns; ++at) {
    if (at->computes) return &*at;
  }
  return nullptr;
}

/// Whether the GPU does what a step launched, or a part, when the CPU is through with the step.
bool ProfilerTrace::is_behind(const Window& window) const {
  const double length = static_cast<double>(window.time.end - window.time.begin);
  const auto late_ns = window.time.end + static_cast<std::int64_t>(kBehind * length);
  auto at = std::ranges::lower_bound(activities_, window.time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.time.end; ++at) {
    if (at->computes && at->time.begin > late_ns) return true;
  }
  return false;
}

/// When the GPU does what each step launched: from its first kernel that computes to that of the
/// next. Where it is never behind the CPU, the steps' own times.
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

/// When backward begins: on the GPU with the first activity that it launches.
std::optional<std::int64_t> ProfilerTrace::backward_start(const Interval& window,
                                                          std::uint64_t thread) const {
  const auto since = std::ranges::lower_bound(backwards_, window.begin, {},
                                              [](const Operator& one) { return one.time.begin; });
  const auto first = std::find_if(since, backwards_.end(), [&](const Operator& one) {
    return one.thread == thread || one.time.begin >= window.end;
  });
  if (first == backwards_.end() || first->time.begin >= window.end) return std::nullopt;
  if (!has_gpu()) return first->time.begin;
  auto at = std::ranges::lower_bound(activities_, first->time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.end; ++at) {
    if (at->thread == thread && at->collective < 0) return at->time.begin;
  }
  return std::nullopt;
}

/// Whether an AccumulateGrad's evaluation launches anything.
bool ProfilerTrace::launches(const Operator& accumulate) const {
  const auto at =
      std::ranges::lower_bound(launches_, std::pair(accumulate.thread, accumulate.time.begin));
  return at != launches_.end() && at->first == accumulate.thread &&
         at->second <= accumulate.time.end;
}

/// The AccumulateGrad that an evaluation holds; null if there is none.
const ProfilerTrace::Operator* ProfilerTrace::inside(const Operator& outer) const {
  const auto at = std::ranges::lower_bound(
      innermost_, std::pair(outer.thread, outer.time.begin), {},
      [](const Operator& one) { return std::pair(one.thread, one.time.begin); });
  const bool is_inside =
      at != innermost_.end() && at->thread == outer.thread && at->time.begin <= outer.time.end;
  return is_inside ? &*at : nullptr;
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

/// The AccumulateGrads of a step that add a gradient, all on one thread; none if that cannot be.
std::vector<const ProfilerTrace::Operator*> ProfilerTrace::gradients_of(const Window& window,
                                                                        Imported& imported) const {
  const auto start = [](const Operator& one) { return one.time.begin; };
  auto at = std::ranges::lower_bound(accumulates_, window.time.begin, {}, start);
  const auto end = std::ranges::lower_bound(accumulates_, window.time.end, {}, start);
  std::vector<const Operator*> found;
  std::map<std::uint64_t, std::size_t> threads;
  for (; at != end; ++at) {
    const Operator* const inner = inside(*at);
    if (inner != nullptr && inner->is_undefined()) continue;
    found.push_back(&*at);
    ++threads[at->thread];
  }
  if (threads.size() <= 1) return found;
  const auto most =
      std::ranges::max_element(threads, {}, [](const auto& thread) { return thread.second; });
  // Parameters without a gradient, where no shapes are recorded: nothing is launched for them.
  const std::size_t others = found.size() - most->second;
  if (has_gpu()) {
    std::erase_if(
        found, [&](const Operator* one) { return one->thread != most->first && !launches(*one); });
    if (found.size() == most->second) {
      add_once(imported.not_told,
               fmt::format("{} gradients of {}: their AccumulateGrad runs on another thread than "
                           "the {} others and launches nothing, so they are left out",
                           others, window.name, most->second));
      return found;
    }
  }
  add_once(imported.not_told,
           fmt::format("the gradients of {}: AccumulateGrad runs {} times on one thread and {} "
                       "times on {} others, as with several GPUs in one process; trace one process "
                       "per GPU",
                       window.name, most->second, others, threads.size() - 1));
  return {};
}

/// Whether operators of forward begin in that time.
bool ProfilerTrace::goes_forward(const Interval& between, std::uint64_t thread) const {
  const auto at =
      std::ranges::lower_bound(forward_, std::pair(thread, between.begin), {},
                               [](const Begin& one) { return std::pair(one.thread, one.ns); });
  return at != forward_.end() && at->thread == thread && at->ns < between.end;
}

std::vector<ProfilerTrace::Pass> ProfilerTrace::passes_of(
    const Window& window, const std::vector<const Operator*>& accumulates) const {
  std::vector<Pass> passes;
  std::int64_t before_ns = window.time.begin;
  for (const Operator* one : accumulates) {
    if (passes.empty() || goes_forward({before_ns, one->time.begin}, window.thread)) {
      passes.push_back(
          {.accumulates = {}, .since_ns = after_optimizers({before_ns, one->time.begin})});
    }
    passes.back().accumulates.push_back(one);
    before_ns = one->time.end;
  }
  return passes;
}

/// Whether an optimizer steps after one pass and before the other.
bool ProfilerTrace::steps_between(const Pass& pass, const Pass& next) const {
  const auto at = std::ranges::lower_bound(optimizer_steps_, pass.accumulates.back()->time.begin,
                                           {}, &Interval::begin);
  return at != optimizer_steps_.end() && at->begin < next.accumulates.front()->time.begin;
}

/// When steps of optimizers that begin in that time have ended, or when it begins.
std::int64_t ProfilerTrace::after_optimizers(const Interval& time) const {
  std::int64_t end_ns = time.begin;
  auto at = std::ranges::lower_bound(optimizer_steps_, time.begin, {}, &Interval::begin);
  for (; at != optimizer_steps_.end() && at->begin < time.end; ++at) {
    end_ns = std::max(end_ns, std::min(at->end, time.end));
  }
  return end_ns;
}

void ProfilerTrace::read_pass(const Window& window, Pass& pass, Imported& imported) const {
  const std::uint64_t thread = pass.accumulates.front()->thread;
  const auto backward_ns = backward_start({pass.since_ns, window.time.end}, thread);
  if (backward_ns && has_gpu()) {
    const Activity* const first = first_computing(pass.since_ns, window.time.end);
    if (first != nullptr) {
      pass.forward_s = std::max(0.0, to_seconds(*backward_ns - first->time.begin));
    }
  } else if (backward_ns) {
    pass.forward_s = to_seconds(*backward_ns - pass.since_ns);
  }
  auto launched = std::ranges::lower_bound(activities_, pass.since_ns, {}, &Activity::launch_ns);
  std::int64_t last_ns = INT64_MIN;  // the end of what this thread has launched, but collectives
  std::optional<double> last_ready_s;
  for (const Operator* at : pass.accumulates) {
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
    if (inner != nullptr && inner->has_shape) {
      gradient.shape = inner->shape;
      gradient.dtype = dtype_of(inner->dtype);
      gradient.elements = inner->shape.empty() ? 1 : elements_or_none(gradient.shape);
    }
    pass.gradients.push_back(std::move(gradient));
    for (const Collective* what : collectives_of(*at)) {
      if (what->kind() != CollectiveKind::kAllReduce) {
        add_once(imported.not_told,
                 fmt::format("a model: gradients of {} travel by {}, and only all-reduces are read",
                             window.name, io::quote(what->name)));
        continue;
      }
      TracedGradient& bucket = pass.buckets.emplace_back(traced_of(*what));
      bucket.ready_s = last_ready_s;
    }
  }
}

namespace {

bool are_alike(const std::vector<TracedGradient>& a, const std::vector<TracedGradient>& b) {
  return std::ranges::equal(a, b, [](const TracedGradient& one, const TracedGradient& other) {
    return one.elements == other.elements && one.shape == other.shape;
  });
}

}  // namespace

/// Where all passes have the same gradients, they are micro-steps, or iterations if an optimizer
/// steps between them: keeps the last that is synchronised.
void ProfilerTrace::keep_last_iteration(const std::string& name, std::vector<Pass>& passes,
                                        TracedStep& step, Imported& imported) const {
  const Pass& last = passes.back();
  const std::size_t count = passes.size();
  if (std::ranges::any_of(
          passes, [&](const Pass& pass) { return !are_alike(pass.gradients, last.gradients); })) {
    return;
  }
  // The passes that gradients are synchronised after: before a step of the optimizer, or those that
  // communicate.
  std::size_t synchronised = 1;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const bool ends = steps_between(passes[i], passes[i + 1]) || !passes[i].buckets.empty();
    synchronised += ends ? 1 : 0;
  }
  if (count % synchronised != 0) {
    add_once(imported.not_told,
             fmt::format("the micro-steps of {}: it goes backward {} times, and synchronises or "
                         "steps {} times",
                         name, count, synchronised));
    return;
  }
  step.micro_steps = static_cast<int>(count / synchronised);
  if (synchronised > 1) {
    add_once(imported.not_told,
             fmt::format("one synchronisation per {}: it holds {}, of which the last is the "
                         "model's, and times are a share of it",
                         name.substr(0, name.find('#')), synchronised));
    const auto part = static_cast<double>(synchronised);
    for (std::optional<double>* time : {&step.length_s, &step.compute_s, &step.communication_s,
                                        &step.exposed_communication_s, &step.idle_s}) {
      if (*time) **time /= part;
    }
  }
  std::vector<double> forward;
  for (const Pass& pass : passes) {
    if (pass.forward_s) forward.push_back(*pass.forward_s);
  }
  passes.erase(passes.begin(), passes.end() - 1);
  if (passes.back().forward_s) passes.back().forward_s = median(std::move(forward));
}

void ProfilerTrace::add_gradients(const Window& window, TracedStep& step,
                                  Imported& imported) const {
  const std::vector<const Operator*> accumulates = gradients_of(window, imported);
  if (accumulates.empty()) return;
  std::vector<Pass> passes = passes_of(window, accumulates);
  for (Pass& pass : passes) read_pass(window, pass, imported);
  keep_last_iteration(window.name, passes, step, imported);
  if (passes.size() > 1) {
    // Passes of different gradients are one: their times count from where the first goes backward.
    Pass all = {.accumulates = accumulates, .since_ns = window.time.begin};
    read_pass(window, all, imported);
    passes = {std::move(all)};
  }
  step.gradients = std::move(passes.back().gradients);
  step.buckets = std::move(passes.back().buckets);
  step.forward_s = passes.back().forward_s;
}

/// What a step communicates besides its buckets.
void ProfilerTrace::add_collectives(const Window& window, TracedStep& step) const {
  std::vector<const Collective*> all;
  auto at = std::ranges::lower_bound(activities_, window.time.begin, {}, &Activity::launch_ns);
  for (; at != activities_.end() && at->launch_ns < window.time.end; ++at) {
    if (at->collective >= 0) all.push_back(&collectives_[static_cast<std::size_t>(at->collective)]);
  }
  if (all.empty()) {
    auto call =
        std::ranges::lower_bound(collective_calls_, window.time.begin, {},
                                 [](const CollectiveCall& one) { return one.call.time.begin; });
    for (; call != collective_calls_.end() && call->call.time.begin < window.time.end; ++call) {
      all.push_back(&call->what);
    }
  }
  step.collectives = static_cast<std::int64_t>(all.size() + submits_.size());
  for (const Collective* what : all) {
    if (what->kind() == CollectiveKind::kReduceScatter) ++step.reduce_scatters;
    if (what->kind() != CollectiveKind::kAllReduce || !step.buckets.empty()) continue;
    step.other_all_reduces.push_back(traced_of(*what));
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

std::string ProfilerTrace::why_no_gpu() const {
  const auto most =
      std::ranges::max_element(unknown_, {}, [](const auto& category) { return category.second; });
  if (most == unknown_.end()) {
    return "it has no activity of a GPU; record ProfilerActivity.CUDA (of other devices theirs)";
  }
  return fmt::format(
      "it has no event of category kernel, gpu_memcpy or gpu_memset, which activities of a device "
      "are known by; {} events are of category {}",
      most->second, io::quote(most->first));
}

std::optional<Imported> ProfilerTrace::finish(const TraceHeader& header) {
  if (!is_of_pytorch_) return std::nullopt;
  join();
  Imported imported{
      .format = "PyTorch profiler", .hardware = short_text(header.device), .events = events_};
  add_world_size(header, imported);
  const std::vector<Window> steps = windows(imported);
  const std::vector<Interval> times = times_on_gpu(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TracedStep step{.name = steps[i].name, .length_s = to_seconds(times[i].end - times[i].begin)};
    add_times(times[i], step);
    add_gradients(steps[i], step, imported);
    add_collectives(steps[i], step);
    imported.steps.push_back(std::move(step));
  }
  if (has_gpu() && std::ranges::all_of(activities_, [](const Activity& activity) {
        return activity.launch_ns < 0;
      })) {
    add_once(imported.not_told,
             fmt::format("which step launched what, and with it times of gradients: none of {} "
                         "activities of the GPU has the correlation of a call of a runtime",
                         activities_.size()));
  }
  if (!has_gpu()) {
    add_once(imported.not_told,
             fmt::format("times of computation{}: {}", waits_.empty() ? " and communication" : "",
                         why_no_gpu()));
  }
  return imported;
}

}  // namespace hipress::traces
