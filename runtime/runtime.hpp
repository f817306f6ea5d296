#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/codec/state_store.hpp"
#include "runtime/host_runtime.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

struct RuntimeOptions {
  std::uint64_t seed = 1;  ///< of the codecs' random draws
  /// wait() ends the job after so long without a task done, or a little more: see patience().
  double timeout_s = 30;
};

/// Runs one rank's program on CPUs, all of it iteration after iteration. Inputs may change until
/// gradient_ready.
class Runtime : public RankRuntime, private HostRuntime {
 public:
  /// `units[u]` has as many values as unit u of Program::layout() has elements. It stays in place
  /// while the runtime lives, and so does `states`, where encoders find what they keep between
  /// iterations. A bulk group's values are its members' one after the other, and zeros behind them
  /// at the start of every iteration. Gradients in a group need no memory of their own; factors
  /// have the runtime's.
  Runtime(transport::Endpoint& endpoint, const Program& program,
          std::vector<std::span<float>> units, kernels::StateStore& states,
          const RuntimeOptions& options);
  ~Runtime() override { stop(); }

  void begin(std::uint64_t iteration) override;
  void start(Clock::time_point at) override;
  void gradient_ready(std::uint32_t gradient, Clock::time_point at) override;
  Clock::time_point await_computation(std::uint32_t index) override;
  void computed(std::uint32_t index, const Interval& when) override;
  void wait_until(Clock::time_point at) override { sleep_until(at); }
  void wait() override;
  std::span<const Interval> intervals() const override { return intervals_; }
  std::int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<Factor> factors() const override { return work_.factors(); }

 private:
  void ended(std::uint32_t /*part*/) override {}
  void collective_ready(std::uint32_t index, Clock::time_point at) override {
    run_collective(index, at);
  }
};

}  // namespace hipress::runtime
