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

/// Runs one rank's program on CPUs. Each unit of the layout goes on at its own pace, whatever
/// iteration other units are in. Any thread begins an iteration of a unit with begin_unit(); one
/// thread of the owner's calls wait_for_unit() in a loop, which returns the units that have ended.
/// Ranks may begin units in any order: each unit is an exchange of its own, in which a message
/// waits at its sender until its receiver has begun the unit, too. All-reduces run on every rank in
/// the order of Program::collectives(), again and again.
class UnitRuntime : private HostRuntime {
 public:
  /// As Runtime. std::invalid_argument if a batch holds tasks of several units.
  UnitRuntime(transport::Endpoint& endpoint, const Program& program,
              std::vector<std::span<float>> units, kernels::StateStore& states,
              const RuntimeOptions& options);
  ~UnitRuntime() override { stop(); }

  /// Begins an iteration of the unit, whose values are in its memory. The unit must have members
  /// and not be under way. `step` is the iteration that codecs are told, which is less than
  /// `iteration` if iterations were taken back. Failures are reported by wait_for_unit(). Any
  /// thread may call this.
  void begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step);
  /// Waits until a unit has ended, and returns it: its memory has the means, its messages have
  /// left, and it may begin again. Returns kNoIndex after stop_waiting(). Throws as
  /// Runtime::wait(). Only one thread may call this.
  std::uint32_t wait_for_unit();
  /// Ends wait_for_unit() for good. Any thread may call this.
  void stop_waiting();
  /// Restores what encoders keep for these elements, such as residuals, to what it was before the
  /// unit's last iteration. The unit must not be under way.
  void take_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
    work_.take_back(unit, first, elements);
  }
  /// To be called when the states have been replaced: what was done before can no longer be taken
  /// back.
  void forget() { work_.forget(); }
  /// Reports that something else failed on which this rank depends: wait_for_unit() throws it.
  using FallibleRuntime::fail;

 private:
  /// All-reduces that are ready and wait for their turn in the order of Program::collectives().
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
