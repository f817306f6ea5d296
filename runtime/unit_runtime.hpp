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
/// other units are in. Any thread may begin an iteration of a unit with begin_unit(); one thread of
/// the owner calls wait_for_unit() in a loop, which returns completed units. Ranks may begin units
/// in any order: each unit is an exchange of its own, in which a message waits at its sender until
/// its receiver can take it, at the latest when it has begun the unit. All-reduces run in the order
/// of Program::collectives(), which is the same on all ranks; after the last, the order starts
/// again. An all-reduce that is ready early waits for its turn.
class UnitRuntime : private HostRuntime {
 public:
  /// As for Runtime. Also throws std::invalid_argument if a batch holds tasks of several units.
  UnitRuntime(transport::Endpoint& endpoint, const Program& program,
              std::vector<std::span<float>> units, kernels::StateStore& states,
              const RuntimeOptions& options);
  ~UnitRuntime() override { stop(); }

  /// Begins an iteration of the unit, whose memory holds its values. The unit must have members and
  /// must not be running. `step` is the iteration number for codecs, which is less than `iteration`
  /// if iterations were undone. wait_for_unit() reports failures. Any thread may call this.
  void begin_unit(std::uint32_t unit, std::uint64_t iteration, std::uint64_t step);
  /// Waits for a unit to complete and returns it: its memory holds the means, its messages have
  /// left, and it may begin again. Returns kNoIndex after stop_waiting(). Throws as Runtime::wait()
  /// does. Only one thread may call this.
  std::uint32_t wait_for_unit();
  /// Makes wait_for_unit() return kNoIndex once no completed unit is left. Any thread may call it.
  void stop_waiting();
  /// Restores the encoders' state of these elements (residuals) to that before the unit's last
  /// iteration. The unit must not be running.
  void take_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
    work_.take_back(unit, first, elements);
  }
  /// Call it when the states have been replaced: earlier iterations can no longer be undone.
  void forget() { work_.forget(); }
  /// Adds the values that this rank's encoders of the unit hold back to `sums`, in the scale of its
  /// gradients, and leaves zeros in the encoders. The unit must not be running.
  void take_residuals(std::uint32_t unit, std::span<float> sums) {
    work_.take_residuals(unit, sums);
  }
  /// Reports an external failure; wait_for_unit() throws it.
  using FallibleRuntime::fail;

 private:
  /// Ready all-reduces, which run in the order of Program::collectives().
  struct Turns {
    std::vector<bool> ready;  ///< per place in Program::collectives()
    std::size_t next = 0;
    Clock::time_point last;  ///< ready time of the last queued all-reduce
  };

  void ended(std::uint32_t part) override;
  void collective_ready(std::uint32_t index, Clock::time_point at) override;

  // Guarded by mutex_.
  std::uint32_t under_way_ = 0;      ///< running units
  std::deque<std::uint32_t> ended_;  ///< completed units, for wait_for_unit()
  bool waiting_stops_ = false;
  Turns turns_;
};

}  // namespace hipress::runtime
