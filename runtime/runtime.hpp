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
  std::uint64_t seed = 1;  ///< seed of the codecs' random draws
  /// Seconds without a finished task after which wait() aborts the job; patience() says how much
  /// longer it may take.
  double timeout_s = 30;
};

/// Runs one rank's program on CPUs, one whole iteration after the other. A gradient's input may
/// change until gradient_ready() is called for it.
class Runtime : public RankRuntime, private HostRuntime {
 public:
  /// `units[u]` holds one value per element of unit u of Program::layout(). `states` holds the
  /// encoders' state between iterations. The units' memory, `states`, `endpoint` and `program` must
  /// outlive the runtime. A bulk group holds the values of its members one after the other,
  /// followed by zeros at the start of every iteration. A gradient in a group needs no memory of
  /// its own, and the runtime owns the memory of factors.
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
