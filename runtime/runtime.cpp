#include "runtime/runtime.hpp"

#include <algorithm>
#include <utility>

namespace hipress::runtime {

Runtime::Runtime(transport::Endpoint& endpoint, const Program& program,
                 std::vector<std::span<float>> units, kernels::StateStore& states,
                 const RuntimeOptions& options)
    : HostRuntime(endpoint, program, {std::vector<std::uint32_t>(program.tasks().size()), 1},
                  {program, std::move(units), states, options.seed, false}, options.timeout_s) {
  prepare_exchanges();
}

void Runtime::begin(std::uint64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    rethrow_failure();
    bytes_sent_ = 0;
    reset(part(0), {iteration, iteration});
  }
  part(0).exchange->begin(iteration);
}

void Runtime::start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  HostRuntime::start(part(0), at);
}

void Runtime::gradient_ready(std::uint32_t gradient, Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  backward_done(gradient, at);
}

Clock::time_point Runtime::await_computation(std::uint32_t index) {
  std::unique_lock lock(mutex_);
  return HostRuntime::await_computation(lock, index);
}

void Runtime::computed(std::uint32_t index, const Interval& when) {
  const std::lock_guard lock(mutex_);
  HostRuntime::computed(index, when);
}

void Runtime::wait() {
  {
    std::unique_lock lock(mutex_);
    const Clock::time_point called = Clock::now();
    const auto over = [this] { return part(0).remaining == 0 || failure_; };
    while (!changed_.wait_for(lock, look(), over)) {
      end_if_stalled_since(lock, std::max(called, progress_));
    }
    rethrow_failure();
  }
  finish(*part(0).exchange);
}

}  // namespace hipress::runtime
