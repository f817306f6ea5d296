#include "runtime/unit_runtime.hpp"

#include <algorithm>
#include <utility>

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Makes one part per unit, with the tasks of the unit's factors. Forward is in no part.
Parts parts_of_units(const Program& program) {
  const casync::Layout& layout = program.layout();
  Parts parts{{}, static_cast<std::uint32_t>(layout.units.size())};
  for (const LocalTask& local : program.tasks()) {
    const bool of_gradient = local.task.kind == Kind::kBackward;
    parts.of.push_back(local.task.kind == Kind::kForward ? kNoIndex
                       : of_gradient                     ? layout.unit_of[local.task.gradient]
                                                         : layout.owner(local.task.gradient));
  }
  return parts;
}

}  // namespace

UnitRuntime::UnitRuntime(transport::Endpoint& endpoint, const Program& program,
                         std::vector<std::span<float>> units, kernels::StateStore& states,
                         const RuntimeOptions& options)
    : HostRuntime(endpoint, program, parts_of_units(program),
                  {program, std::move(units), states, options.seed, true}, options.timeout_s) {
  turns_.ready.resize(program_.collectives().size());
  prepare_exchanges();
}

void UnitRuntime::begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    ++under_way_;
    progress_ = Clock::now();
    reset(part(unit), {iteration, step});
  }
  try {
    part(unit).exchange->begin(iteration);
  } catch (const transport::PeerError& error) {
    return fail(std::make_exception_ptr(named(error)));
  } catch (...) {
    return fail(std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  const Clock::time_point at = Clock::now();
  start(part(unit), at);
  for (const std::uint32_t gradient : program_.layout().units[unit].members) {
    backward_done(gradient, at);
  }
}

std::uint32_t UnitRuntime::wait_for_unit() {
  std::uint32_t unit = kNoIndex;
  {
    std::unique_lock lock(mutex_);
    const auto over = [this] { return !ended_.empty() || failure_ || waiting_stops_; };
    while (!changed_.wait_for(lock, look(), over)) {
      if (under_way_ > 0) end_if_stalled_since(lock, progress_);
    }
    rethrow_failure();
    if (ended_.empty()) return kNoIndex;
    unit = ended_.front();
    ended_.pop_front();
  }
  transport::Exchange& exchange = *part(unit).exchange;
  finish(exchange);
  // Post receives early: peers would otherwise wait for this rank's begin record, which may queue
  // behind other units' messages. No early message overwrites gradients: only a mean is received
  // into their memory, and every mean needs this rank's part first.
  exchange.post();
  const std::lock_guard lock(mutex_);
  --under_way_;
  return unit;
}

void UnitRuntime::stop_waiting() {
  const std::lock_guard lock(mutex_);
  waiting_stops_ = true;
  changed_.notify_all();
}

void UnitRuntime::ended(std::uint32_t part) { ended_.push_back(part); }

/// Queues all ready all-reduces in the order common to all ranks.
void UnitRuntime::collective_ready(std::uint32_t index, Clock::time_point at) {
  const std::span<const std::uint32_t> order = program_.collectives();
  const auto place = std::ranges::find(order, index) - order.begin();
  turns_.ready[static_cast<std::size_t>(place)] = true;
  while (turns_.ready[turns_.next]) {
    turns_.ready[turns_.next] = false;
    // The queue is served by ready time, so distinct times keep this order.
    turns_.last = std::max(at, turns_.last + Clock::duration(1));
    run_collective(order[turns_.next], turns_.last);
    turns_.next = (turns_.next + 1) % order.size();
  }
}

}  // namespace hipress::runtime
