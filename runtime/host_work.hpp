#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/codec/state_store.hpp"
#include "runtime/operations.hpp"
#include "runtime/program.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/stages.hpp"
#include "runtime/undo.hpp"
#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// One rank's program on CPUs: its memory, and the bodies of its tasks. Tasks of different units
/// may run concurrently; tasks of one unit run one after the other.
class HostWork {
 public:
  /// `units` and `states` are as for Runtime. take_back() needs `keeps_undo`. `seed` is that of the
  /// codecs' random draws.
  HostWork(const Program& program, std::vector<std::span<float>> units, kernels::StateStore& states,
           std::uint64_t seed, bool keeps_undo);

  /// Iteration of a task, and the step that codecs use (see UnitRuntime::begin_unit()).
  struct When {
    std::uint64_t iteration = 0;
    std::uint64_t step = 0;
  };
  /// Runs an Encode, a Decode or a Merge, with its batch.
  void run(std::uint32_t index, const When& when);
  void all_reduce(const LocalTask& local, transport::Collective& library) const;

  /// Sets the length of a message that arrived, in bytes.
  void set_length(std::uint32_t message, std::int64_t bytes) { message_bytes_[message] = bytes; }
  /// Bytes that a Send moves in this iteration.
  std::int64_t bytes_to_send(const LocalTask& local) const;
  /// Bytes that a Send or an AllReduce puts on this node's egress in this iteration.
  std::int64_t bytes_sent(const LocalTask& local) const;
  /// Memory of a Send's or Recv's message.
  std::span<std::byte> payload(const LocalTask& local) const;

  std::vector<Factor> factors() const;
  /// See UnitRuntime.
  void take_back(std::uint32_t unit, std::int64_t first, std::int64_t elements) {
    undo_.put_back(unit, first, elements);
  }
  void forget() { undo_.forget(); }
  /// See UnitRuntime.
  void take_residuals(std::uint32_t unit, std::span<float> sums);

 private:
  void prepare_states(kernels::StateStore& states, bool keeps_undo);
  void prepare_stages(kernels::StateStore& states, bool keeps_undo);
  void encode(std::span<const std::uint32_t> batch, const When& when);
  void decode(std::span<const std::uint32_t> batch, const When& when);
  void merge(std::span<const std::uint32_t> batch, const When& when);
  /// Runs an Encode or Decode between a unit and its factors.
  void code_factors(const LocalTask& local, const When& when);
  Operands operands(std::uint32_t index, const When& when) const;
  std::span<float> slice(const LocalTask& local) const;
  /// Part of the slice that is in use, as a factor may be shorter in this iteration.
  std::span<float> used_slice(const LocalTask& local) const;
  std::span<std::byte> buffer(std::uint32_t message) const;

  const Program& program_;
  const std::uint64_t seed_;
  std::vector<std::span<float>> units_;
  std::vector<float> factor_memory_;
  std::map<std::uint32_t, StagedUnit> staged_;  ///< by unit

  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> arena_;   ///< all messages
  std::vector<std::int64_t> message_bytes_;  ///< used bytes per message
  std::vector<kernels::State> states_;       ///< per task
  Undo undo_;
  std::vector<std::uint32_t> undo_of_;  ///< per task: its encoder in undo_, or kNoIndex
  /// Encoders of staged units, by unit.
  std::map<std::uint32_t, std::vector<std::uint32_t>> undo_of_staged_;
};

}  // namespace hipress::runtime
