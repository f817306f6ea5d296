#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernels/codec/state_store.hpp"
#include "runtime/host_runtime.hpp"
#include "runtime/program.hpp"
#include "runtime/runtime.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// Runs one rank's program on CPUs, each unit of the layout at its own pace, whatever iteration
/// other units are in. An iteration of a unit is begin_unit(), and wait_for_unit() of any thread.
/// Ranks may begin units in any order: each unit is an exchange of its own, in which a message
/// waits at its sender until its receiver has begun the unit, too. All-reduces run in the order of
/// Program::collectives(), over and over, on every rank.
class UnitRuntime : private HostRuntime {
 public:
  /// As Runtime. std::invalid_argument if a batch holds tasks of several units.
  UnitRuntime(transport::Endpoint& endpoint, const Program& program,
              std::vector<std::span<float>> units, kernels::StateStore& states,
              const RuntimeOptions& options);
  ~UnitRuntime() override { stop(); }

  /// Begins an iteration of the unit. The unit must have members and not be under way; all of its
  /// values are in its memory. `step` is what codecs take for the iteration; it lags behind if
  /// iterations were taken back. wait_for_unit() reports failures. Any thread may call this.
  void begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step);
  /// Returns a unit whose values are the means and whose messages have left: it may begin again.
  /// Throws as Runtime::wait(); returns kNoIndex after stop_waiting(). For one thread.
  std::uint32_t wait_for_unit();
  void stop_waiting();
  /// Makes what encoders keep for these elements of a unit, which is not under way, what it was
  /// before the unit's last iteration.
  void take_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
    work_.take_back(unit, first, elements);
  }
  /// States have been replaced: nothing can be taken back that was done before.
  void forget() { work_.forget(); }
  /// Something else that this rank's part depends on has failed: wait_for_unit() throws that.
  using FallibleRuntime::fail;

 private:
  /// All-reduces that may run, but for those before them in the order.
  struct Turns {
    std::vector<bool> ready;  ///< per place in Program::collectives()
    std::size_t next = 0;
    Clock::time_point last;  ///< ready time of the one that was queued last
  };

  void ended(std::uint32_t part) override;
  void collective_ready(std::uint32_t index, Clock::time_point at) override;

  // Guarded by mutex_.
  std::uint32_t under_way_ = 0;      ///< units
  std::deque<std::uint32_t> ended_;  ///< units, for wait_for_unit()
  bool waiting_stops_ = false;
  Turns turns_;
};

}  // namespace hipress::runtime
