// The backward passes of ProfilerTrace's steps: their gradients and buckets, and what they
// communicate.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "io/error.hpp"
#include "models/model.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {

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

/// What the gradient holds that an AccumulateGrad adds if it is sparse; none: it is dense.
std::optional<SparseSize> ProfilerTrace::sparse_in(const Operator& accumulate) const {
  const auto place = [](const SparseUse& one) { return std::pair(one.thread, one.ns); };
  const auto first = std::ranges::lower_bound(
      sparse_, std::pair(accumulate.thread, accumulate.time.begin), {}, place);
  const auto end = std::ranges::upper_bound(
      first, sparse_.end(), std::pair(accumulate.thread, accumulate.time.end), {}, place);
  if (first == end) return std::nullopt;
  // Where it is added to another, it was made a little before.
  constexpr int kMost = 32;
  int looked = 0;
  for (auto at = end; at != sparse_.begin() && looked < kMost; ++looked) {
    --at;
    if (at->thread != accumulate.thread) break;
    if (at->size.values > 0) return at->size;
  }
  return SparseSize();
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
                                                                        TracedStep& step,
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
      imported.tell(
          fmt::format("{} gradients of {}: their AccumulateGrad runs on another thread than "
                      "the {} others and launches nothing, so they are left out",
                      others, window.name, most->second));
      return found;
    }
  }
  step.no_gradients = fmt::format(
      "the gradients of {}: AccumulateGrad runs {} times on one thread and {} "
      "times on {} others, as with several GPUs in one process, or the traces of "
      "several ranks in one file; trace one process per GPU, and give one rank's file",
      window.name, most->second, others, threads.size() - 1);
  imported.tell(step.no_gradients);
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
    if (inner != nullptr) gradient.sparse = sparse_in(*inner);
    pass.gradients.push_back(std::move(gradient));
    for (const Collective* what : collectives_of(*at)) {
      if (what->kind() == CollectiveKind::kReduceScatter) continue;  // tell_reductions()
      if (what->kind() != CollectiveKind::kAllReduce) {
        tell_travels(window.name, what->name, imported);
        continue;
      }
      TracedGradient& bucket = pass.buckets.emplace_back(traced_of(*what));
      bucket.ready_s = last_ready_s;
    }
  }
}

/// Where all passes have the same gradients, they are micro-steps, or iterations if an optimizer
/// steps between them: keeps the last that is synchronised.
void ProfilerTrace::keep_last_iteration(const std::string& name, std::vector<Pass>& passes,
                                        TracedStep& step, Imported& imported) const {
  const Pass& last = passes.back();
  const std::size_t count = passes.size();
  if (std::ranges::any_of(
          passes, [&](const Pass& pass) { return !same_layout(pass.gradients, last.gradients); })) {
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
    imported.tell(
        fmt::format("the micro-steps of {}: it goes backward {} times, and synchronises or "
                    "steps {} times",
                    name, count, synchronised));
    return;
  }
  step.micro_steps = static_cast<int>(count / synchronised);
  if (synchronised > 1) {
    imported.tell(
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
  const std::vector<const Operator*> accumulates = gradients_of(window, step, imported);
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
    if (what->kind() == CollectiveKind::kAllGather && what->out_elements > 0) {
      const std::int64_t left = models::kMaxElements - step.gathered_elements;
      step.gathered_elements += std::min(left, what->out_elements);
    }
    if (what->kind() != CollectiveKind::kAllReduce || !step.buckets.empty()) continue;
    step.other_all_reduces.push_back(traced_of(*what));
  }
}

}  // namespace hipress::traces
