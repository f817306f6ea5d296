// Part of ProfilerTrace for backward passes, with their gradients, buckets and other communication.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "io/error.hpp"
#include "models/model.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/tensors.hpp"

namespace hipress::traces {
namespace {

std::int64_t elements_in(const std::vector<TracedGradient>& buckets) {
  std::int64_t sum = 0;
  for (const TracedGradient& one : buckets) {
    sum += std::min(models::kMaxElements - sum, one.elements);
  }
  return sum;
}

/// Lower bound on the bytes of a collective. Elements of unknown type count as float32.
std::int64_t bytes_of(const std::string& dtype, std::int64_t elements) {
  const std::int64_t each = bytes_of_type(dtype);
  return elements * (each > 0 ? each : bytes_of_type("float32"));
}

bool is_near_size(std::int64_t a, std::int64_t b) {
  constexpr double kPadding = 0.01;
  const auto more = static_cast<double>(std::max(a, b));
  return std::abs(static_cast<double>(a - b)) <= kPadding * more;
}

}  // namespace

/// Start of backward in ns. On a GPU, it is the start of the first activity that backward launches;
/// without a GPU, the start of its first function. Empty if unknown.
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

/// True if the evaluation of an AccumulateGrad launches anything on the GPU.
bool ProfilerTrace::launches(const Operator& accumulate) const {
  const auto at =
      std::ranges::lower_bound(launches_, std::pair(accumulate.thread, accumulate.time.begin));
  return at != launches_.end() && at->first == accumulate.thread &&
         at->second <= accumulate.time.end;
}

/// AccumulateGrad operator within an evaluation; null without one.
const ProfilerTrace::Operator* ProfilerTrace::inside(const Operator& outer) const {
  const auto at = std::ranges::lower_bound(
      innermost_, std::pair(outer.thread, outer.time.begin), {},
      [](const Operator& one) { return std::pair(one.thread, one.time.begin); });
  const bool is_inside =
      at != innermost_.end() && at->thread == outer.thread && at->time.begin <= outer.time.end;
  return is_inside ? &*at : nullptr;
}

/// Size of the sparse gradient that an AccumulateGrad adds; empty if it is dense.
std::optional<SparseSize> ProfilerTrace::sparse_in(const Operator& accumulate) const {
  const auto place = [](const SparseUse& one) { return std::pair(one.thread, one.ns); };
  const auto first = std::ranges::lower_bound(
      sparse_, std::pair(accumulate.thread, accumulate.time.begin), {}, place);
  const auto end = std::ranges::upper_bound(
      first, sparse_.end(), std::pair(accumulate.thread, accumulate.time.end), {}, place);
  if (first == end) return std::nullopt;
  // The sparse tensor was made by one of the preceding operators.
  constexpr int kMost = 32;
  int looked = 0;
  for (auto at = end; at != sparse_.begin() && looked < kMost; ++looked) {
    --at;
    if (at->thread != accumulate.thread) break;
    if (at->size.values > 0) return at->size;
  }
  return SparseSize();
}

/// Collectives that an AccumulateGrad launches, in the order of their launch.
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

/// AccumulateGrads of a step that add a gradient. They must be on one thread; otherwise the result
/// is empty, and `step` gets the reason.
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
  // Without recorded shapes, an AccumulateGrad on another thread that launches nothing is taken to
  // add no gradient.
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

/// True if operators of forward begin in that interval.
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

/// True if an optimizer steps between the two passes.
bool ProfilerTrace::steps_between(const Pass& pass, const Pass& next) const {
  const auto at = std::ranges::lower_bound(optimizer_steps_, pass.accumulates.back()->time.begin,
                                           {}, &Interval::begin);
  return at != optimizer_steps_.end() && at->begin < next.accumulates.front()->time.begin;
}

/// End of the optimizer steps that begin in that interval; its beginning if there are none.
std::int64_t ProfilerTrace::after_optimizers(const Interval& time) const {
  std::int64_t end_ns = time.begin;
  auto at = std::ranges::lower_bound(optimizer_steps_, time.begin, {}, &Interval::begin);
  for (; at != optimizer_steps_.end() && at->begin < time.end; ++at) {
    end_ns = std::max(end_ns, std::min(at->end, time.end));
  }
  return end_ns;
}

/// Sets the gradients, buckets and times of a backward pass.
void ProfilerTrace::read_pass(const Window& window, Pass& pass) const {
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
  std::int64_t last_ns = INT64_MIN;  // end of this thread's activities so far, without collectives
  std::optional<double> last_ready_s;
  for (const Operator* at : pass.accumulates) {
    std::int64_t own_ns = INT64_MIN;
    for (; launched != activities_.end() && launched->launch_ns <= at->time.end; ++launched) {
      if (launched->thread != thread || launched->collective >= 0) continue;
      last_ns = std::max(last_ns, launched->time.end);
      if (launched->launch_ns >= at->time.begin) own_ns = std::max(own_ns, launched->time.end);
    }
    const Operator* const inner = inside(*at);
    // If AccumulateGrad launches nothing, the thread's previous activity made the gradient.
    std::int64_t ready_ns = own_ns == INT64_MIN ? last_ns : own_ns;
    if (!has_gpu()) {
      ready_ns = inner != nullptr ? inner->time.end : at->time.end;
      // Time in earlier bucket hooks is not computation.
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
      if (what->kind() == CollectiveKind::kAllReduce && carries_counts(what->dtype)) continue;
      if (what->kind() != CollectiveKind::kAllReduce) {
        if (pass.travels.empty()) pass.travels = what->name;
        continue;
      }
      TracedGradient& bucket = pass.buckets.emplace_back(traced_of(*what));
      bucket.ready_s = last_ready_s;
      pass.filled_by.push_back(pass.gradients.size());
    }
  }
  take_out_inputs(pass);
}

/// Moves the gradients of inputs from `gradients` to `of_inputs`.
void ProfilerTrace::take_out_inputs(Pass& pass) const {
  const std::vector<std::size_t> places =
      updated_.of_inputs(pass.gradients, total_of(pass.buckets));
  for (std::size_t& filled : pass.filled_by) {
    const auto before = std::ranges::lower_bound(places, filled) - places.begin();
    filled = std::max<std::size_t>(1, filled - static_cast<std::size_t>(before));
  }
  pass.of_inputs = taken_out(pass.gradients, places);
}

/// Reports a job that trains several models: an optimizer steps between passes that differ.
void ProfilerTrace::say_in_turn(const std::string& name, const std::vector<Pass>& passes,
                                Imported& imported) const {
  std::size_t steps = 0;
  std::string sizes;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    sizes += fmt::format("{}{}",
                         i == 0                   ? ""
                         : i + 1 == passes.size() ? " and "
                                                  : ", ",
                         passes[i].gradients.size());
    steps += i > 0 && steps_between(passes[i - 1], passes[i]) ? 1 : 0;
  }
  if (steps == 0 || !imported.problem.empty()) return;
  imported.problem = fmt::format(
      "{} goes backward {} times, to {} gradients, and an optimizer steps in between, as where "
      "several models are trained in turn (a GAN's generator and discriminator): each is "
      "synchronised by itself, and a model has one synchronisation a step; trace the steps of one "
      "of them alone",
      name, passes.size(), sizes);
}

/// Divides the times of the profiler's step by the number of iterations in it.
void ProfilerTrace::share_out(TracedStep& step, int iterations) {
  step.iterations = iterations;
  for (std::optional<double>* time : {&step.length_s, &step.compute_s, &step.communication_s,
                                      &step.exposed_communication_s, &step.idle_s}) {
    if (*time) **time /= iterations;
  }
}

/// Keeps the last synchronised pass if all passes have the same gradients. The passes are then
/// micro-steps or, where an optimizer steps between them, iterations.
void ProfilerTrace::keep_last_iteration(const std::string& name, std::vector<Pass>& passes,
                                        TracedStep& step, Imported& imported) const {
  const Pass& last = passes.back();
  const std::size_t count = passes.size();
  const auto differs = [&](const Pass& pass) {
    const bool both_send = !pass.buckets.empty() && !last.buckets.empty();
    return !same_layout(pass.gradients, last.gradients) ||
           (both_send && elements_in(pass.buckets) != elements_in(last.buckets));
  };
  if (std::ranges::any_of(passes, differs)) {
    say_in_turn(name, passes, imported);
    return;
  }
  // Count passes before an optimizer step, or with communication: they end with a synchronisation.
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
        fmt::format("one synchronisation per {}: it holds {}, of which the last is "
                    "read, and times are a share of it",
                    name.substr(0, name.find('#')), synchronised));
    share_out(step, static_cast<int>(synchronised));
  }
  std::vector<double> forward;
  for (const Pass& pass : passes) {
    if (pass.forward_s) forward.push_back(*pass.forward_s);
  }
  Pass& kept = passes.back();
  if (kept.forward_s) kept.forward_s = median(std::move(forward));
  double last_s = 0;
  for (const TracedGradient& one : kept.gradients)
    last_s = std::max(last_s, one.ready_s.value_or(0));
  const double all_s = step.micro_steps * (kept.forward_s.value_or(0) + last_s);
  if (step.micro_steps > 1 && all_s > step.length_s.value_or(all_s)) take_medians(passes);
  passes.erase(passes.begin(), passes.end() - 1);
}

/// Replaces the last pass's ready times by medians over all passes. The last pass is kept because
/// only it has bucket hooks.
void ProfilerTrace::take_medians(std::vector<Pass>& passes) {
  Pass& last = passes.back();
  std::vector<std::optional<double>> latest;  // running maximum over gradients
  for (std::size_t g = 0; g < last.gradients.size(); ++g) {
    std::vector<double> times;
    for (const Pass& pass : passes) {
      if (pass.gradients[g].ready_s) times.push_back(*pass.gradients[g].ready_s);
    }
    if (!times.empty()) last.gradients[g].ready_s = median(std::move(times));
    const auto& ready_s = last.gradients[g].ready_s;
    latest.push_back(g == 0 ? ready_s : std::max(latest.back(), ready_s));
  }
  for (std::size_t b = 0; b < last.buckets.size(); ++b) {
    last.buckets[b].ready_s = latest[last.filled_by[b] - 1];
  }
}

void ProfilerTrace::add_gradients(const Window& window, TracedStep& step,
                                  Imported& imported) const {
  step.returned = std::ranges::count_if(
      returned_, [&](std::int64_t ns) { return window.time.begin <= ns && ns < window.time.end; });
  const std::vector<const Operator*> accumulates = gradients_of(window, step, imported);
  if (accumulates.empty()) return;
  std::vector<Pass> passes = passes_of(window, accumulates);
  for (Pass& pass : passes) read_pass(window, pass);
  keep_last_iteration(window.name, passes, step, imported);
  if (passes.size() > 1) {
    // Passes with different gradients become one pass. Its times count from the start of the first.
    Pass all = {.accumulates = accumulates, .since_ns = window.time.begin};
    read_pass(window, all);
    passes = {std::move(all)};
  }
  step.gradients = std::move(passes.back().gradients);
  step.of_inputs = std::move(passes.back().of_inputs);
  step.buckets = std::move(passes.back().buckets);
  step.forward_s = passes.back().forward_s;
  step.travels = std::move(passes.back().travels);
  const auto product = std::ranges::lower_bound(products_, window.time.begin, {}, &Begin::ns);
  step.factorises = product != products_.end() && product->ns < window.time.end;
}

/// AccumulateGrad in which a call was made; null without one.
const ProfilerTrace::Operator* ProfilerTrace::accumulate_around(std::uint64_t thread,
                                                                std::int64_t ns) const {
  constexpr int kLooked = 16;
  auto at = std::ranges::upper_bound(accumulates_, ns, {},
                                     [](const Operator& one) { return one.time.begin; });
  for (int looked = 0; at != accumulates_.begin() && looked < kLooked; ++looked) {
    --at;
    if (at->thread == thread) return at->time.end >= ns ? &*at : nullptr;
  }
  return nullptr;
}

/// Adds a step's communication except for its buckets. Returns the part that carries gradients.
ProfilerTrace::Carried ProfilerTrace::add_collectives(const Window& window,
                                                      TracedStep& step) const {
  const auto by_start = [](const Operator& one) { return one.time.begin; };
  Carried carried;
  const auto first = std::ranges::lower_bound(accumulates_, window.time.begin, {}, by_start);
  const auto end = std::ranges::lower_bound(accumulates_, window.time.end, {}, by_start);
  if (first != end) {
    const Operator* const inner = inside(*std::prev(end));
    carried.last_ns = std::prev(end)->time.end;
    carried.ready_ns = inner != nullptr ? inner->time.end : carried.last_ns;
  }
  const std::vector<Started> all = started(window);
  step.collectives = static_cast<std::int64_t>(all.size() + submits_.size());
  std::vector<Started> behind;
  for (const Started& one : all) {
    const CollectiveKind kind = one.what.kind();
    if (kind == CollectiveKind::kReduceScatter) ++step.reduce_scatters;
    if (kind == CollectiveKind::kAllGather && one.what.out_elements > 0) {
      const std::int64_t left = models::kMaxElements - step.gathered_elements;
      step.gathered_elements += std::min(left, one.what.out_elements);
    }
    const bool may_average = kind == CollectiveKind::kAllReduce && !carries_counts(one.what.dtype);
    const bool averages = may_average && accumulate_around(one.thread, one.ns) != nullptr;
    const std::int64_t elements =
        std::min(models::kMaxElements, std::max(one.what.elements, one.what.out_elements));
    add_to(averages ? step.averages : step.other, {.time = one.time},
           bytes_of(traced_of(one.what).dtype, elements));
    if (averages && one.time) carried.times.push_back(*one.time);
    if (may_average && step.buckets.empty()) {
      step.other_all_reduces.push_back(traced_of(one.what));
    }
    if (!averages && carried.last_ns != INT64_MIN && one.ns > carried.last_ns) {
      behind.push_back(one);
    }
  }
  if (step.buckets.empty() && !step.gradients.empty()) add_late_buckets(behind, step, carried);
  return carried;
}

/// Adds late buckets: all-reduces after backward, if those of one group have about as many elements
/// as the gradients. All-reduces of unknown size only count as communication of gradients.
void ProfilerTrace::add_late_buckets(const std::vector<Started>& behind, TracedStep& step,
                                     Carried& carried) const {
  std::map<std::string, std::vector<const Started*>> groups;
  bool told = true;
  for (const Started& one : behind) {
    if (one.what.kind() != CollectiveKind::kAllReduce || carries_counts(one.what.dtype)) continue;
    groups[fmt::format("{} {}", one.what.group, one.what.group_size.value_or(0))].push_back(&one);
    told = told && one.what.elements > 0;
  }
  const std::int64_t elements = elements_in(step.gradients);
  std::vector<const Started*> found;
  for (const auto& [name, members] : groups) {
    std::int64_t sum = 0;
    for (const Started* one : members) {
      sum += std::min(models::kMaxElements - sum, std::max<std::int64_t>(0, one->what.elements));
    }
    // If a size is unknown, any of them may carry the gradients.
    if (!told || (elements > 0 && is_near_size(sum, elements))) {
      found.insert(found.end(), members.begin(), members.end());
    }
  }
  for (const Started* one : found) {
    if (told) step.late_buckets.push_back(traced_of(one->what));
    if (one->time) carried.times.push_back(*one->time);
  }
  std::int64_t most = 0;
  for (const Started& one : behind) {
    if (std::ranges::find(found, &one) != found.end()) continue;
    const std::int64_t size = std::max(one.what.elements, one.what.out_elements);
    step.behind_elements += std::min(models::kMaxElements - step.behind_elements, size);
    if (size > most) step.behind = one.what.name;
    most = std::max(most, size);
  }
}

/// Adds the exposed time of communication of gradients or shards.
void ProfilerTrace::add_exposed(const Interval& window, const Carried& carried,
                                TracedStep& step) const {
  std::vector<Interval> times = carried.times;
  const auto sharding = step.sharded ? sharding_of(*step.sharded) : std::nullopt;
  if (sharding) times = sharding->times;
  // Shards and collectives after backward have times of the last iteration only.
  const int iterations = sharding || step.buckets.empty() ? 1 : step.iterations;
  if (!waits_.empty()) {
    for (const Interval& hook : times_of_hooks()) times.push_back(hook);
  }
  const TimeSet own = TimeSet(std::move(times)).within(window);
  if (has_gpu()) {
    const TimeSet computing = computing_.within(window);
    step.modelled_exposed_s = to_seconds(length_outside(own, computing)) / iterations;
    step.averages.exposed_s = step.modelled_exposed_s;
    step.other.exposed_s =
        std::max(0.0, step.exposed_communication_s.value_or(0) - *step.modelled_exposed_s);
    return;
  }
  if (sharding) {
    const TimeSet hooks = sharding_hooks_.within(window);
    step.modelled_exposed_s = to_seconds(own.length() + hooks.length() - both(own, hooks).length());
  } else if (!waits_.empty()) {
    step.modelled_exposed_s = step.exposed_communication_s;
  } else if (step.averages.count == 0 && step.collectives == 0) {
    step.modelled_exposed_s = 0;
  } else if (!own.intervals().empty() && carried.ready_ns != INT64_MIN) {
    // Without a GPU (handled above), backward ends when the last gradient is ready. The time from
    // then to the end of the last communication is exposed.
    step.modelled_exposed_s =
        to_seconds(std::max<std::int64_t>(0, own.intervals().back().end - carried.ready_ns));
  } else if (const auto found = optimizer_s({carried.last_ns, window.end}); found > 0) {
    step.optimizer_s = found;
  }
}

}  // namespace hipress::traces
